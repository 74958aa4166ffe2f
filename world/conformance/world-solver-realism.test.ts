/** What a solver that behaves as public ones do shows its clients. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { PrivateKeyAccount } from 'viem'
import {
  native,
  pollFor,
  type SolverWorld,
  type StatusReply,
  startSolverWorld,
  usdc,
} from './solver/solver-world.ts'

let world: SolverWorld
let trader: PrivateKeyAccount

before(async () => {
  world = await startSolverWorld(['8453', '42161'])
  trader = await world.newTrader()
})
after(() => world?.[Symbol.asyncDispose]())

const body = (change: Record<string, unknown> = {}) => ({
  user: trader.address,
  recipient: trader.address,
  refundTo: trader.address,
  originChainId: 8453,
  destinationChainId: 42161,
  originCurrency: native,
  destinationCurrency: usdc['42161'],
  amount: '2000000000000000',
  tradeType: 'EXACT_INPUT',
  ...change,
})
const set = (realism: Record<string, unknown>) => world.set('/realism', { preset: 'quiet', ...realism })

test('a fill is on its chain before its status shows it, and a status can go back', async () => {
  await set({ statusLag: 700 })
  const recipient = world.newAddress()
  const quote = await world.quote(body({ recipient }))
  const id = quote.steps[0]?.requestId ?? ''
  await world.sendSteps(trader, quote)
  await pollFor('the fill', async () =>
    (await world.balance('42161', usdc['42161'], recipient)) > 0n ? true : undefined,
  )
  assert.notEqual((await world.statusOf(id)).status, 'success')
  assert.equal((await world.end(id)).status, 'success')
  await set({ statusBack: 1 })
  assert.equal((await world.statusOf(id)).status, 'submitted')
  await set({})
  assert.equal((await world.statusOf(id)).status, 'success')
})

test('a success that was announced becomes a refund, and nothing was filled', async () => {
  await set({ retracted: 1, retractAfterMs: 800, sponsoredRefunds: true })
  const recipient = world.newAddress()
  const quote = await world.quote(body({ recipient, originCurrency: usdc['8453'], amount: '4000000' }))
  const id = quote.steps[0]?.requestId ?? ''
  const before = await world.balance('8453', usdc['8453'], trader.address)
  await world.sendSteps(trader, quote)
  const announced = await world.end(id)
  assert.equal(announced.status, 'success')
  const [hash] = announced.txHashes
  const receipt = await world.clients['42161']
    .getTransactionReceipt({ hash: hash as `0x${string}` })
    .catch(() => undefined)
  assert.equal(receipt, undefined)
  await pollFor('the refund', async () => ((await world.statusOf(id)).status === 'refund' ? true : undefined))
  assert.equal(await world.balance('42161', usdc['42161'], recipient), 0n)
  assert.equal(await world.balance('8453', usdc['8453'], trader.address), before)
})

test('quotes of one request differ, and each keeps its own minimum', async () => {
  await set({ quoteNoiseBps: 30 })
  const quotes = [await world.quote(body()), await world.quote(body()), await world.quote(body())]
  const amounts = new Set(quotes.map(({ details }) => details.currencyOut.amount))
  assert.equal(amounts.size, quotes.length)
})

test('too many quotes are answered with 429 and the seconds to wait, reads are counted apart', async () => {
  await set({ quotesPerMinute: 2 })
  const ask = () => world.request<{ message: string }>('POST', `${world.urls.solver}/quote/v2`, body())
  const replies = [await ask(), await ask(), await ask(), await ask(), await ask()]
  const last = replies.at(-1)
  assert.equal(last?.status, 429)
  const seconds = Number(last?.headers.get('retry-after'))
  assert.ok(seconds >= 1 && seconds <= 60, `${seconds}`)
  assert.equal((await fetch(`${world.urls.solver}/chains`)).status, 200)
})

test('a page of HTML, a lost reply and a stopped solver are what a client meets', async () => {
  await set({ html: 1 })
  const page = await fetch(`${world.urls.solver}/chains`)
  assert.deepEqual([page.status, page.headers.get('content-type')], [502, 'text/html'])
  await set({ lostReply: 1 })
  type Listed = { requests: { id: string }[] }
  const before = (await world.toControl<Listed>('GET', '/solver/requests')).requests.length
  await assert.rejects(
    fetch(`${world.urls.solver}/quote/v2`, { method: 'POST', body: JSON.stringify(body()) }),
  )
  const after = (await world.toControl<Listed>('GET', '/solver/requests')).requests.length
  // The request took effect: the quote exists.
  assert.equal(after, before + 1)
  await set({})
  await world.toControl('PUT', '/faults', { target: 'solver', status: 503, count: 1 })
  assert.equal((await fetch(`${world.urls.solver}/chains`)).status, 503)
  assert.equal((await fetch(`${world.urls.solver}/chains`)).status, 200)
})

test('under all deviations at once every deposit ends in one fill or one refund', async () => {
  await set({
    preset: 'realistic',
    quotesPerMinute: 0,
    readsPerMinute: 0,
    retractAfterMs: 300,
    retracted: 0.3,
  })
  const recipient = world.newAddress()
  const patiently = async <T>(ask: () => Promise<T>): Promise<T> =>
    pollFor('an answer', () => ask().catch(() => undefined))
  const quotes = []
  for (let count = 0; count < 6; count++) {
    const change = { recipient, originCurrency: usdc['8453'], amount: '3000000' }
    quotes.push(await patiently(() => world.quote(body(change))))
  }
  for (const quote of quotes) await world.sendSteps(trader, quote)
  await set({})
  const ends: StatusReply[] = []
  for (const { steps } of quotes) {
    const id = steps[0]?.requestId ?? ''
    const end = await pollFor('the last word', async () => {
      const { requests } = await world.toControl<{ requests: { id: string; retractAtMs?: number }[] }>(
        'GET',
        '/solver/requests',
      )
      const announced = requests.find((each) => each.id === id)
      return announced?.retractAtMs === undefined ? world.end(id) : undefined
    })
    ends.push(end)
  }
  const filled = ends.filter(({ status }) => status === 'success').length
  const refunded = ends.filter(({ status }) => status === 'refund').length
  assert.equal(filled + refunded, quotes.length)
  const received = await world.balance('42161', usdc['42161'], recipient)
  assert.ok(
    received > BigInt(filled) * 2_900_000n && received <= BigInt(filled) * 3_000_000n,
    `${received} for ${filled}`,
  )
})
