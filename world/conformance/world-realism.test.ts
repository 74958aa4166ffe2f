import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Hex, parseEther, toHex } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { startAnvil } from '#world/evm/anvil.ts'
import { reorganise } from '#world/evm/reorg.ts'
import { rpcOver } from '#world/evm/rpc.ts'
import { startWorld, type World } from '#world/world.ts'

let dataDir = ''
let world: World

before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'portico-realism-'))
  world = await startWorld({ dataDir, port: 0, realism: 'realistic' })
})

after(async () => {
  await world?.[Symbol.asyncDispose]()
  await rm(dataDir, { recursive: true, force: true })
})

type Counts = { target: string; seed: number } & Partial<Record<string, number>>

const request = async (method: string, path: string, body?: unknown) => {
  const answer = await fetch(`${world.urls.control}${path}`, {
    method,
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const reply = (await answer.json()) as { presets: Counts[]; detail?: string }
  return { status: answer.status, reply }
}

/** Undefined after a transport error: this test counts the answers of nodes. */
const call = async (method: string, params: unknown[]): Promise<unknown> => {
  try {
    const answer = await fetch(world.urls.evm['8453'], {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    if (answer.status !== 200) return undefined
    return ((await answer.json()) as { result?: unknown }).result
  } catch {
    return undefined
  }
}

async function fundedSender() {
  const sender = privateKeyToAccount(generatePrivateKey())
  const grant = { chain_id: '8453', address: sender.address, token: 'native', amount: '1' }
  assert.equal((await request('POST', '/faucet/fund', grant)).status, 200)
  return { sender, to: privateKeyToAccount(generatePrivateKey()).address }
}

const transfer = (from: PrivateKeyAccount, to: Hex, nonce: number) =>
  from.signTransaction({
    chainId: 8453,
    type: 'eip1559',
    to,
    nonce,
    gas: 21_000n,
    value: 7n,
    maxFeePerGas: 10_000_000_000n,
    maxPriorityFeePerGas: 1_000_000_000n,
  })

const poll = async <T>(what: string, read: () => Promise<T | undefined>, timeoutMs = 60_000): Promise<T> => {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const found = await read()
    if (found !== undefined) return found
    assert.ok(Date.now() < deadline, `${what} did not happen in ${timeoutMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

test('a world that starts realistic has a preset on every chain, and an invalid one is rejected', async () => {
  const { reply } = await request('GET', '/faults')
  const chains = reply.presets.map(({ target }) => target)
  assert.deepEqual(chains.sort(), ['evm:1', 'evm:137', 'evm:42161', 'evm:8453', 'solana'])
  assert.equal((await request('PUT', '/faults', { preset: 'chaotic' })).status, 400)
  assert.equal((await request('PUT', '/faults', { target: 'prices', preset: 'realistic' })).status, 400)
  assert.equal((await request('PUT', '/faults', { preset: 'realistic', rate: 1 })).status, 400)
})

test('nodes disagree about the newest block, and all transactions land in the end', async () => {
  await request('PUT', '/faults', { target: 'evm:8453', preset: 'realistic', seed: 11 })
  const { sender, to } = await fundedSender()
  const hashes: Hex[] = []
  let wentBack = 0
  let unseen = 0
  for (let nonce = 0; nonce < 60; nonce++) {
    const raw = await transfer(sender, to, nonce)
    // After a lost reply or from a busy node the same bytes are sent again.
    const hash = await poll('a transaction is accepted', async () => {
      const found = await call('eth_sendRawTransaction', [raw])
      if (typeof found === 'string') return found as Hex
      const count = await call('eth_getTransactionCount', [sender.address, 'latest'])
      return typeof count === 'string' && Number(count) > nonce ? ('0x' as Hex) : undefined
    })
    if (hash === '0x') continue
    hashes.push(hash)
    if ((await call('eth_getTransactionReceipt', [hash])) === null) unseen += 1
    const heads = await Promise.all([1, 2, 3, 4].map(() => call('eth_blockNumber', [])))
    const numbers = heads.filter((head) => typeof head === 'string').map(Number)
    if (Math.max(...numbers) > Math.min(...numbers)) wentBack += 1
  }
  assert.ok(wentBack > 10, `heads differed ${wentBack} times`)
  assert.ok(unseen > 5, `${unseen} receipts were unseen at first`)
  for (const hash of hashes)
    await poll('a receipt', async () => (await call('eth_getTransactionReceipt', [hash])) ?? undefined)
  await poll('the sum', async () =>
    (await call('eth_getBalance', [to, 'latest'])) === '0x1a4' ? 1 : undefined,
  )
  const counts = (await request('GET', '/faults')).reply.presets.find(({ target }) => target === 'evm:8453')
  assert.equal(counts?.seed, 11)
  assert.ok((counts?.lagging ?? 0) > 20, JSON.stringify(counts))
  assert.ok((counts?.busy ?? 0) > 0, JSON.stringify(counts))
})

/** Once it is in a block, which may be after the answer to its sender. */
const receiptOf = (hash: unknown) =>
  poll(
    'a receipt',
    async () =>
      ((await call('eth_getTransactionReceipt', [hash])) as { blockHash: Hex } | null | undefined) ??
      undefined,
  )

test('transactions that are sent while blocks are removed are mined after them, and each of them once', async () => {
  await using started = new AsyncDisposableStack()
  // A node without autosaves, which pause mining too.
  const { child, rpc } = await startAnvil({
    chainId: '8453',
    pidFile: join(dataDir, 'reorganised.pid'),
    exitFile: join(dataDir, 'reorganised'),
  })
  started.defer(() => child.stop('SIGKILL'))
  const sender = privateKeyToAccount(generatePrivateKey())
  const to = privateKeyToAccount(generatePrivateKey()).address
  await rpc.call('anvil_setBalance', [sender.address, toHex(parseEther('1'))])
  const [first, second] = await Promise.all([0, 1].map((nonce) => transfer(sender, to, nonce)))
  const send = (raw: Hex | undefined) => rpc.call('eth_sendRawTransaction', [raw])
  const mined = (hash: unknown) =>
    poll('a receipt', async () => (await rpc.call('eth_getTransactionReceipt', [hash])) ?? undefined)
  const firstHash = await send(first)
  await mined(firstHash)
  let secondHash: unknown
  const post = async (body: string) => {
    const reply = await rpc.post(body)
    // Its sender has seen that it is gone.
    if (body.includes('anvil_reorg')) assert.equal(await send(first), firstHash)
    return reply
  }
  const removed = await reorganise({
    rpc: rpcOver(post, () => {}),
    automine: true,
    blockSeconds: 2,
    depth: 1,
    vanishedMs: 0,
    nowMs: Date.now,
    runShared: (run) => run(),
    save: async () => {},
    async recordResend() {
      secondHash = await send(second)
      return { removed: () => {}, ended: () => {} }
    },
  })
  assert.equal(removed, 1)
  for (const hash of [firstHash, secondHash]) await mined(hash)
  assert.equal(await rpc.call('eth_getBalance', [to, 'latest']), '0xe')
})

test('reorganisations of one chain follow each other, and leave its transactions in other blocks', async () => {
  await request('PUT', '/faults', { target: 'evm:8453', preset: 'quiet' })
  const { sender, to } = await fundedSender()
  const sent: unknown[] = []
  for (const nonce of [0, 1, 2, 3, 4]) {
    sent.push(await call('eth_sendRawTransaction', [await transfer(sender, to, nonce)]))
    await receiptOf(sent[nonce])
  }
  const lastTwo = () => Promise.all(sent.slice(-2).map(receiptOf))
  const [third, fourth] = await lastTwo()
  assert.notEqual(third?.blockHash, fourth?.blockHash)
  const ended = await Promise.all([
    request('POST', '/chains/8453/reorg', { depth: 1, remine_after_ms: 200 }),
    // A read may have mined an empty block between them.
    request('POST', '/chains/8453/reorg', { depth: 4, remine_after_ms: 0 }),
  ])
  assert.deepEqual(
    ended.map(({ status }) => status),
    [200, 200],
  )
  const [thirdAgain, fourthAgain] = await lastTwo()
  assert.equal(thirdAgain?.blockHash, fourthAgain?.blockHash, 'the second one has removed both blocks')
  assert.notEqual(thirdAgain?.blockHash, third?.blockHash)
  const units = BigInt((await call('eth_getBalance', [to, 'latest'])) as Hex)
  assert.equal(units, 35n)
})

/** Stays the last test: its reorganisation is still open when the world ends. */
test('a receipt vanishes in a reorganisation and returns in another block', async () => {
  await request('PUT', '/faults', { target: 'evm:8453', preset: 'quiet' })
  const { sender, to } = await fundedSender()
  const hash = await call('eth_sendRawTransaction', [await transfer(sender, to, 0)])
  const first = await receiptOf(hash)
  const receipt = () => call('eth_getTransactionReceipt', [hash])
  // The transactions stay out of the blocks until the test has seen it, and the world ends before this time does.
  const running = request('POST', '/chains/8453/reorg', { depth: 1, remine_after_ms: 60_000 })
  running.catch(() => undefined)
  await poll('the receipt vanishes', async () => ((await receipt()) === null ? true : undefined))
  // A later transaction waits for the previous one.
  const next = await call('eth_sendRawTransaction', [await transfer(sender, to, 1)])
  assert.equal(typeof next, 'string')
  assert.equal(await receipt(), null)
  assert.equal(await call('eth_getTransactionReceipt', [next]), null)
  await call('evm_mine', [])
  const [again, later] = [await receiptOf(hash), await receiptOf(next)]
  assert.equal(again.blockHash, later.blockHash)
  assert.notEqual(again.blockHash, first.blockHash)
  assert.equal(await call('eth_getBalance', [to, 'latest']), '0xe')
  assert.ok(BigInt((await call('eth_getBalance', [sender.address, 'latest'])) as Hex) < parseEther('1'))
})
