import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { keccak256 } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { startAnvil } from './anvil.ts'
import { callJournal } from './call-journal.ts'
import { recorder } from './recorder.ts'
import { createStateLock } from './state-lock.ts'

const chainId = 31_337
const sender = privateKeyToAccount(`0x${'51'.repeat(32)}`)

const call = (method: string, params: unknown[]) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })

/** A node that mines each transaction at once, its journal, and the recorder between it and its clients. */
const startRecorded = async (t: TestContext) => {
  const dir = mkdtempSync(join(tmpdir(), 'recorder-'))
  const anvil = await startAnvil({
    chainId: String(chainId),
    pidFile: join(dir, 'node.pid'),
    exitFile: join(dir, 'exit.json'),
  })
  t.after(async () => {
    anvil.rpc.close()
    await anvil.child.stop('SIGKILL')
    rmSync(dir, { recursive: true, force: true })
  })
  await anvil.rpc.call('anvil_setBalance', [sender.address, `0x${(10n ** 18n).toString(16)}`])
  const journal = callJournal(dir, String(chainId))
  journal.startFile()
  const recorded = recorder({
    journal,
    stateLock: createStateLock(),
    rpc: () => anvil.rpc,
    nowMs: Date.now,
    save: () => Promise.resolve(),
    isAutomining: () => true,
  })
  return { anvil, journal, recorded }
}

const signTransfer = (from: typeof sender) =>
  from.signTransaction({
    type: 'eip1559',
    chainId,
    nonce: 0,
    to: sender.address,
    gas: 21_000n,
    maxFeePerGas: 10n ** 10n,
    maxPriorityFeePerGas: 1n,
  })

type Receipt = { result: { transactionHash: string; blockNumber: string } | null }

test('a block that a client reads before the sender has its answer is in the journal', async (t) => {
  const { anvil, journal, recorded } = await startRecorded(t)
  const raw = await signTransfer(sender)
  const { promise: isAccepted, resolve: accepted } = Promise.withResolvers<void>()
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>()
  const sent = recorded.record(call('eth_sendRawTransaction', [raw]), async (body) => {
    const reply = await anvil.rpc.post(body)
    accepted()
    await isReleased
    return reply
  })
  await isAccepted

  const body = call('eth_getTransactionReceipt', [keccak256(raw)])
  let result: Receipt['result'] = null
  // A busy node accepts a transaction a moment before it mines it.
  while (result === null) {
    const reply = await anvil.rpc.post(body)
    await recorded.recordShown()
    result = (JSON.parse(reply) as Receipt).result
  }
  const [entry] = journal.entries()
  assert.equal(entry?.mined?.hash, result.transactionHash)
  assert.equal(entry?.mined?.block, Number(result.blockNumber))

  release()
  await sent
  assert.equal(journal.entries().length, 1)
})

test('a transaction that the node rejects is neither in the journal nor expected in a block', async (t) => {
  const { anvil, journal, recorded } = await startRecorded(t)
  const raw = await signTransfer(privateKeyToAccount(`0x${'52'.repeat(32)}`))
  const reply = await recorded.record(call('eth_sendRawTransaction', [raw]), anvil.rpc.post)
  assert.match(reply, /error/)
  assert.deepEqual(journal.entries(), [])
  assert.equal(recorded.recordShown(), undefined)
})

test('a transaction whose answer is lost is in the journal with its block', async (t) => {
  const { anvil, journal, recorded } = await startRecorded(t)
  const raw = await signTransfer(sender)
  const lost = async (body: string) => {
    await anvil.rpc.post(body)
    return '<html>Bad gateway</html>'
  }
  await recorded.record(call('eth_sendRawTransaction', [raw]), lost)
  assert.deepEqual(
    journal.entries().map(({ mined }) => mined?.hash),
    [keccak256(raw)],
  )
  assert.equal(recorded.recordShown(), undefined)
})

test('the same bytes from two clients are in the journal although the node rejects one of them', async (t) => {
  const { anvil, journal, recorded } = await startRecorded(t)
  const raw = await signTransfer(sender)
  const body = call('eth_sendRawTransaction', [raw])
  const replies = await Promise.all([1, 2].map(() => recorded.record(body, anvil.rpc.post)))
  assert.equal(replies.filter((reply) => reply.includes('error')).length, 1)
  for (const { mined } of journal.entries()) assert.equal(mined?.hash, keccak256(raw))
  assert.notEqual(journal.entries().length, 0)
})

test('calls are sent in the order of their entries', async (t) => {
  const { anvil, journal, recorded } = await startRecorded(t)
  const raw = await signTransfer(sender)
  const sent: string[] = []
  const post = (body: string) => {
    sent.push(body)
    return anvil.rpc.post(body)
  }
  await Promise.all([
    recorded.record(call('eth_sendRawTransaction', [raw]), post),
    recorded.record(call('anvil_setBalance', [sender.address, '0xde0b6b3a7640000']), post),
  ])
  const entries = journal.entries().map(({ call: each }) => ('method' in each ? each.method : 'raw'))
  assert.deepEqual(
    sent.map((body) => (body.includes('anvil_setBalance') ? 'anvil_setBalance' : 'raw')),
    entries,
  )
})

test('the block of a transaction that the node signs is in the journal before a read of it is answered', async (t) => {
  const { anvil, journal, recorded } = await startRecorded(t)
  const [from] = (await anvil.rpc.call('eth_accounts')) as string[]
  const { promise: isAccepted, resolve: accepted } = Promise.withResolvers<void>()
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>()
  const body = call('eth_sendTransaction', [{ from, to: sender.address, value: '0x1' }])
  const sent = recorded.record(body, async (text) => {
    const reply = await anvil.rpc.post(text)
    accepted()
    await isReleased
    return reply
  })
  await isAccepted
  const shown = recorded.recordShown()
  assert.ok(shown)
  release()
  await shown
  assert.equal(typeof journal.entries()[0]?.mined?.block, 'number')
  await sent
})

test('a removed transaction that the node refuses at first is not given up before it was sent once more', async (t) => {
  const { journal, recorded } = await startRecorded(t)
  const raw = await signTransfer(privateKeyToAccount(`0x${'52'.repeat(32)}`))
  const { removed, ended } = await recorded.recordResend([raw])
  removed()
  const [entry] = journal.entries()
  assert.ok(entry && journal.isUnanswered(entry.n))
  ended()
  assert.ok(!journal.isUnanswered(entry.n))
})
