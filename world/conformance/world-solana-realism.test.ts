/** Solana under the preset `realistic`, seen by a client without retries. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Keypair, SystemProgram, Transaction } from '@solana/web3.js'
import { startWorld, type World } from '#world/world.ts'

let dataDir = ''
let world: World
const payer = Keypair.generate()
const to = Keypair.generate().publicKey
const seed = 5

before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'portico-solana-realism-'))
  world = await startWorld({ dataDir, port: 0, only: ['solana'] })
  const grant = { chain_id: '7565164', address: payer.publicKey.toBase58(), token: 'native', amount: '100' }
  assert.equal((await control('POST', '/faucet/fund', grant)).status, 200)
  assert.equal((await control('PUT', '/faults', { target: 'solana', preset: 'realistic', seed })).status, 200)
})

after(async () => {
  await world?.[Symbol.asyncDispose]()
  await rm(dataDir, { recursive: true, force: true })
})

type Preset = { target: string } & Partial<Record<string, number>>
type Reply = { result?: unknown; error?: { code: number; message: string } }
type Statuses = { context: { slot: number }; value: ({ confirmationStatus: string } | null)[] }

const control = async (method: string, path: string, body?: unknown) => {
  const answer = await fetch(`${world.urls.control}${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: answer.status, reply: (await answer.json()) as { presets: Preset[] } }
}

/** The reply of a node, or the transport error. */
const once = async (method: string, params: unknown[]): Promise<Reply | 'busy' | 'page' | 'cut'> => {
  try {
    const answer = await fetch(world.urls.solana, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    if (answer.status === 429) return 'busy'
    if (answer.headers.get('content-type')?.includes('html')) return 'page'
    return (await answer.json()) as Reply
  } catch {
    return 'cut'
  }
}

const poll = async <T>(what: string, read: () => Promise<T | undefined>, timeoutMs = 30_000): Promise<T> => {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const found = await read()
    if (found !== undefined) return found
    assert.ok(Date.now() < deadline, `${what} did not happen in ${timeoutMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const call = <T>(method: string, params: unknown[]): Promise<T> =>
  poll(method, async () => {
    const reply = await once(method, params)
    return typeof reply === 'string' || reply.result === undefined ? undefined : (reply.result as T)
  })

const countsOf = async (): Promise<Preset> => {
  const { reply } = await control('GET', '/faults')
  const found = reply.presets.find(({ target }) => target === 'solana')
  assert.ok(found)
  return found
}

const statusOf = async (signature: string): Promise<string | undefined> =>
  (await call<Statuses>('getSignatureStatuses', [[signature]])).value[0]?.confirmationStatus

test('nodes disagree about the newest slot and a status appears and disappears, until all have caught up', async () => {
  const slots: number[] = []
  for (let n = 0; n < 40; n++) slots.push(await call<number>('getSlot', [{ commitment: 'processed' }]))
  const wentBack = slots.filter((slot, index) => index > 0 && slot < (slots[index - 1] ?? 0)).length
  assert.ok(wentBack > 3, `slots went back ${wentBack} times: ${slots}`)
  assert.ok(Math.max(...slots) - Math.min(...slots) < 40)
})

test('an unknown blockhash is rejected, a confirmed transaction is dropped, and sent again each lands once', async () => {
  let sent = 0
  let dropped = 0
  let refused = 0
  let unseen = 0
  const lamports = 1_000_000
  while ((dropped === 0 || refused === 0 || unseen < 3) && sent < 300) {
    sent += 1
    const transfer = SystemProgram.transfer({
      fromPubkey: payer.publicKey,
      toPubkey: to,
      lamports: lamports + sent,
    })
    const transaction = new Transaction().add(transfer)
    const { value } = await call<{ value: { blockhash: string } }>('getLatestBlockhash', [
      { commitment: 'confirmed' },
    ])
    transaction.recentBlockhash = value.blockhash
    transaction.feePayer = payer.publicKey
    transaction.sign(payer)
    const wire = transaction.serialize().toString('base64')
    const send = () =>
      poll('an answer to a transaction', async () => {
        const reply = await once('sendTransaction', [wire, { encoding: 'base64' }])
        if (typeof reply === 'string') return undefined
        // The reply to the first send may have been lost.
        if (reply.error) assert.match(reply.error.message, /Blockhash not found|already processed/i)
        if (reply.error?.message.includes('Blockhash not found')) {
          refused += 1
          return undefined
        }
        return reply.result === undefined ? 'known' : String(reply.result)
      })
    const before = (await countsOf()).dropped ?? 0
    const signature = await send()
    if (signature === 'known') continue
    const wasDropped = ((await countsOf()).dropped ?? 0) > before
    if (!wasDropped) {
      if ((await statusOf(signature)) === undefined) unseen += 1
      continue
    }
    dropped += 1
    await poll('it is shown as confirmed', async () =>
      (await statusOf(signature)) === 'confirmed' ? true : undefined,
    )
    await poll('the fork is abandoned', async () => {
      const reads = await Promise.all([1, 2, 3, 4, 5].map(() => statusOf(signature)))
      return reads.every((status) => status === undefined) ? true : undefined
    })
    await send()
    await poll('it lands', async () => ((await statusOf(signature)) === 'finalized' ? true : undefined))
  }
  assert.ok(dropped > 0 && refused > 0 && unseen >= 3, JSON.stringify({ sent, dropped, refused, unseen }))
  // A sum of different amounts shows whether each of them arrived exactly once.
  const expected = sent * lamports + (sent * (sent + 1)) / 2
  await poll('every transfer has landed once', async () => {
    const { value } = await call<{ value: number }>('getBalance', [
      to.toBase58(),
      { commitment: 'finalized' },
    ])
    assert.ok(value <= expected, `${value} of ${expected} lamports`)
    return value === expected ? true : undefined
  })
  const counts = await countsOf()
  assert.equal(counts.seed, seed)
  for (const kind of ['lagging', 'busy', 'unknown_blockhash', 'dropped'])
    assert.ok((counts[kind] ?? 0) > 0, `${kind}: ${JSON.stringify(counts)}`)
})
