/** W1 to W10: the cost of each operation at the venue, of the 1,200 weight that it documents per minute and address. */

import { setTimeout as pause } from 'node:timers/promises'
import { http, launch } from '../test/harness/gateway.ts'
import { createFundedPerson, type Person, type TaskBody } from '../test/journeys/users.ts'
import { createEnvironment, unlimited } from './support/environment.ts'
import { median, report } from './support/measure.ts'
import { createVenueMeter } from './support/venue-meter.ts'

const runs = 5
const viewsPerRun = 30
const usersTogether = 20
const togetherMs = 75_000
const perMinute = 1_200
const settleMs = 6_000
/** Documented: the number of users that the venue streams to one address. */
const streamedUsers = 10

process.stdout.write(
  `${JSON.stringify({
    section: 'Weight of each venue operation',
    about:
      'The venue documents 1,200 of request weight a minute and address, and streams of 10 users. Counted by a proxy before the local venue, which keeps to both (`npm run bench -- venue-weight`). What more addresses buy is in [operations.md](../operations.md).',
  })}\n`,
)

await using environment = await createEnvironment()
const worldEnv = await environment.world()
const venueUrl = worldEnv.HYPERLIQUID_URL!
await using meter = await createVenueMeter(venueUrl)
const databaseUrl = await environment.newDatabase('weights')
const env = {
  ...worldEnv,
  ...unlimited,
  DATA_DIR: environment.newFolder('gateway'),
  DATABASE_URL: databaseUrl,
  HYPERLIQUID_URL: meter.url,
  HYPERLIQUID_WS_URL: `${venueUrl.replace(/^http/, 'ws')}/ws`,
}
const control = (path: string, body: object) =>
  http(`${environment.control()}/venues/hyperliquid${path}`, { method: 'POST', body })
await control('/price', { coin: 'BTC', price: 100_000 })
await control('/settings', { wsUsersPerAddress: streamedUsers })

const post = async (person: Person, path: string, body: object): Promise<TaskBody> => {
  const { status, body: reply } = await person.call<TaskBody>(`POST /v1/${path}?wait=true`, { body })
  if (status !== 200 || (reply.outcome !== 'executed' && !path.endsWith('setup')))
    throw new Error(`${path}: ${status} ${JSON.stringify(reply)}`)
  return reply
}
/** The weight until no further request follows. */
const measureWeight = async (work: () => Promise<unknown>, restMs = 1_000) => {
  const from = meter.position()
  await work()
  await pause(restMs)
  return { weight: meter.weightSince(from), parts: meter.partsSince(from) }
}
const long = { asset: 'BTC', side: 'long', size: '0.001', leverage: 5 }
const bracket = { ...long, tp_price: '120000', sl_price: '80000' }
const close = (person: Person) => post(person, 'perp/close', { asset: 'BTC' })

type WeightSample = Awaited<ReturnType<typeof measureWeight>>
const reportWeight = (id: string, name: string, weightMax: number, list: WeightSample[], divisor = 1) =>
  report({
    id,
    name,
    goal: `<= ${weightMax}`,
    unit: 'weight',
    ratios: list.map(({ weight }) => weight / divisor),
    met: (weight) => weight <= weightMax,
    annex: { parts: list.at(-1)?.parts },
  })

const createTrader = async (url: string): Promise<Person> => {
  const person = await createFundedPerson(url)
  await post(person, 'perp/setup', {})
  await post(person, 'perp/fund', { amount_usd: '1000' })
  return person
}

const people: Person[] = []
{
  // Unlimited, because a minute is too short for all these measurements in sequence.
  await using gateway = await launch({ env: { ...env, HYPERLIQUID_WEIGHT_PER_MINUTE: '100000' } })
  const setups: WeightSample[] = []
  const firstReconciliations: WeightSample[] = []
  for (let run = 0; run < 3; run += 1) {
    setups.push(
      await measureWeight(async () => {
        people.push(await createTrader(gateway.url))
      }, 0),
    )
    firstReconciliations.push(await measureWeight(async () => {}, settleMs))
  }
  reportWeight('W1', 'enrolment with set-up and first deposit', 60, setups)
  reportWeight(
    'W1a',
    'first comparison of a new account by the reconciler, in the least urgent class',
    110,
    firstReconciliations,
  )

  const [trader] = people as [Person]
  await post(trader, 'perp/open', long)
  await close(trader)
  // The account is streamed from its first trade on, once the reconciler has subscribed it.
  await pause(settleMs)
  const trades: Record<'open' | 'close' | 'bracket' | 'buy', WeightSample[]> = {
    open: [],
    close: [],
    bracket: [],
    buy: [],
  }
  for (let run = 0; run < runs; run += 1) {
    trades.open.push(await measureWeight(() => post(trader, 'perp/open', long)))
    trades.close.push(await measureWeight(() => close(trader)))
    trades.bracket.push(await measureWeight(() => post(trader, 'perp/open', bracket)))
    await close(trader)
    trades.buy.push(
      await measureWeight(() => post(trader, 'spot_venue/buy', { asset: 'HYPE', notional_usdc: '20' })),
    )
  }
  reportWeight('W2', 'open of a subscribed account', 6, trades.open)
  reportWeight('W3', 'open with take-profit and stop-loss', 8, trades.bracket)
  reportWeight('W4', 'close', 6, trades.close)
  reportWeight('W5', 'purchase on spot, dollars from the perpetual side included', 30, trades.buy)

  // The cost above that of an undisturbed order.
  const usualOpen = median(trades.open.map(({ weight }) => weight))
  const measureUnknownOutcome = async (fault: object, outcome: string): Promise<WeightSample> => {
    await control('/faults', { endpoint: 'exchange', type: 'order', ...fault })
    const found = await measureWeight(async () => {
      const reply = await trader.call<TaskBody>('POST /v1/perp/open?wait=true&timeout=60', { body: long })
      const end = await trader.ended(reply.body.task_id, 60_000)
      if (end.outcome !== outcome) throw new Error(JSON.stringify(end))
    })
    await http(`${environment.control()}/venues/hyperliquid/faults`, { method: 'DELETE', body: {} })
    return { ...found, weight: found.weight - usualOpen }
  }
  const lost = [await measureUnknownOutcome({ effect: 'dropReply', count: 1 }, 'executed')]
  lost.push(await measureUnknownOutcome({ effect: 'dropReply', count: 1 }, 'executed'))
  reportWeight('W9', 'lost reply to an order that was accepted, on top of the open', 30, lost)
  const never = [await measureUnknownOutcome({ effect: 'status', status: 503 }, 'not_executed')]
  reportWeight(
    'W10',
    'order that never arrives, until it counts as not executed, on top of the open',
    240,
    never,
  )
  await close(trader)

  const polled = async (person: Person, path: string) => {
    for (let view = 0; view < viewsPerRun; view += 1) {
      const startedMs = performance.now()
      const { status } = await person.call(`GET ${path}`)
      if (status !== 200) throw new Error(`${path}: ${status}`)
      await pause(Math.max(0, 1_000 - (performance.now() - startedMs)))
    }
  }
  const [, , watcher] = people as [Person, Person, Person]
  reportWeight(
    'W6',
    'view of orders, amortised at one a second',
    2,
    [
      await measureWeight(() => polled(trader, '/v1/perp/orders'), 0),
      await measureWeight(() => polled(watcher, '/v1/perp/orders'), 0),
    ],
    viewsPerRun,
  )
  reportWeight(
    'W7',
    'view of the set-up, amortised at one a second',
    2,
    [await measureWeight(() => polled(watcher, '/v1/perp/setup'), 0)],
    viewsPerRun,
  )

  // The others enrol without a limit, which is not part of this measurement.
}
{
  await using gateway = await launch({ env })
  while (people.length < usersTogether) people.push(await createTrader(gateway.url))
  await pause(settleMs)
}
await using gateway = await launch({ env: { ...env, HYPERLIQUID_WEIGHT_PER_MINUTE: String(perMinute) } })
const refused: Record<string, number> = {}
const waits: number[] = []
const from = meter.position()
const untilMs = performance.now() + togetherMs
const count = (status: number, what: string) => {
  if (status !== 200) refused[`${what} ${status}`] = (refused[`${what} ${status}`] ?? 0) + 1
}
const poll = async (person: Person) => {
  while (performance.now() < untilMs) {
    const startedMs = performance.now()
    count((await person.call('GET /v1/perp/orders', { at: gateway.url })).status, 'orders')
    waits.push(performance.now() - startedMs)
    await pause(Math.max(0, 1_000 - (performance.now() - startedMs)))
  }
}
const trade = async (person: Person, at: number) => {
  await pause((at * togetherMs) / usersTogether / 2)
  while (performance.now() < untilMs) {
    const opened = await person.call<TaskBody>('POST /v1/perp/open?wait=true', {
      at: gateway.url,
      body: long,
    })
    count(opened.status, 'open')
    await pause(2_000)
    const closed = await person.call<TaskBody>('POST /v1/perp/close?wait=true', {
      at: gateway.url,
      body: { asset: 'BTC' },
    })
    count(closed.status, 'close')
    await pause(togetherMs / 3)
  }
}
await Promise.all(people.flatMap((person, at) => [poll(person), trade(person, at)]))
report({
  id: 'W8',
  name: `${usersTogether} users who trade and poll once a second, the worst minute`,
  goal: '< 1,200, no close and no open refused',
  unit: 'weight',
  ratios: [meter.worstMinuteSince(from)],
  met: (weight) => weight < perMinute && !Object.keys(refused).some((what) => /^(open|close)/.test(what)),
  annex: { refused, p50_view_ms: Math.round(median(waits)), parts: meter.partsSince(from) },
})
