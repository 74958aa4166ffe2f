/** A provider that pays otherwise than it quoted: what a swap and a stop say is what their chains show. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { bySize, isNightly, proofSeed } from '../proof/support/seed.ts'
import { type Case, cases, randomOf, slowCases } from './payout-cases.ts'
import {
  assertMeasured,
  balancesOf,
  createFundedPerson,
  executed,
  type Held,
  type SwapBody,
  swapOf,
  usdcToPolygon,
} from './swap-users.ts'
import type { Person } from './users.ts'
import { base, polygon, solana, type World, worldOf } from './world.ts'

const stopRounds = bySize({ short: 1, full: 2, nightly: 20 })
const stops = stopRounds * cases.length
const swaps = bySize({
  short: cases.length,
  full: 3 * cases.length,
  nightly: 1_000 - stops - slowCases.length * 4,
})
/** Of JUP; each round takes a fifth of it away. */
const startPrice = 0.8
const swappers = bySize({ short: 4, full: 4, nightly: 8 })
const endMsMax = 120_000
const slowEndMsMax = 900_000
/** Of each slow case, at the side of the others. */
const slowEach = 4

type Reported = Pick<SwapBody, 'status' | 'outcome' | 'error' | 'result' | 'balance_changes'>
type Place = { chain_id: string; token_address: string }
type Trade = { sold: Place; bought: Place }
type Event = {
  id: string
  type: string
  task_id: string | null
  subject: { id: string } | null
  data: Reported & Record<string, string>
}

const factsOf = ({ status, outcome, error, result, balance_changes }: Reported) => ({
  status,
  outcome,
  error,
  result,
  balance_changes,
})
const endOf = ({ status, outcome, error }: Reported) =>
  [status, outcome, error?.code].filter(Boolean).join(' ')

describe('a provider pays otherwise than it quoted', { concurrency: true }, () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  const random = randomOf(proofSeed('partial payments'))
  before(async () => {
    // With a key the solver says that a refund would cost too much: a failure then lasts for seconds.
    gateway = await freshGateway(
      {
        LIFI_URL: 'off',
        RELAY_API_KEY: 'lies',
        RELAY_QUOTES_PER_MINUTE: '0',
        ORDER_QUOTES_PER_MINUTE: '6000',
      },
      { ownWorld: 'its solver pays otherwise than it quoted' },
    )
    world = await worldOf(gateway.world)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const eventsOf = async (person: Person, query: string): Promise<Event[]> =>
    (await person.call<{ events: Event[] }>(`GET /v1/notifications?after=0&limit=100&${query}`)).body.events

  /**
   * The event of the end says how it ends, each later payment is an event, and the task says the sum of both. Answers with the
   * task.
   */
  const assertReported = async (
    person: Person,
    taskId: string,
    { name, ends, later = [] }: Pick<Case, 'name' | 'ends' | 'later'>,
    endMs = endMsMax,
  ): Promise<SwapBody> => {
    const events = await eventually(
      async () => {
        const found = await eventsOf(person, `task_id=${taskId}`)
        const isReported = (type: string) =>
          found.some(({ type: of, data }) => of === 'swap.late_payment' && data.type === type)
        const hasEnded = found.some(({ type }) => type === 'task.completed' || type === 'task.failed')
        return hasEnded && later.every(isReported) ? found : undefined
      },
      `${name} ends and is reported`,
      endMs,
    )
    const all = events.filter(({ type }) => type === 'task.completed' || type === 'task.failed')
    assert.equal(all.length, 1, `${name}: one end`)
    const reported = factsOf(all[0]!.data)
    assert.equal(endOf(reported), ends, `${name}: ${JSON.stringify(reported)}`)
    assert.equal(
      reported.status === 'completed',
      BigInt(reported.result.amount_out) >= BigInt(reported.result.amount_out_min),
      name,
    )
    const last = (await person.task(taskId)) as unknown as SwapBody
    const late = events.filter(({ type }) => type === 'swap.late_payment').map(({ data }) => data)
    if (late.length === 0) assert.deepEqual(factsOf(last), reported, name)
    assert.deepEqual([...new Set(late.map(({ type }) => type))].sort(), later.toSorted(), name)
    assert.deepEqual([last.status, last.outcome], [reported.status, reported.outcome], name)
    const sumOf = (type: string) =>
      late.reduce((sum, each) => sum + (each.type === type ? BigInt(each.amount!) : 0n), 0n)
    assert.equal(BigInt(last.result.amount_out), BigInt(reported.result.amount_out) + sumOf('fill'), name)
    const backOf = ({ result }: Reported) => BigInt(result.refunded?.amount ?? 0)
    assert.equal(backOf(last), backOf(reported) + sumOf('refund'), name)
    return last
  }

  const isAt = (one: Place, other: Place) =>
    one.chain_id === other.chain_id && one.token_address.toLowerCase() === other.token_address.toLowerCase()
  /** The amounts of the result are those that the balance changes have, which are measured. */
  const assertNamed = ({ result, balance_changes }: SwapBody, { sold, bought }: Trade) => {
    const gainOf = (place: Place) =>
      balance_changes.reduce((sum, each) => sum + (isAt(each, place) ? BigInt(each.amount) : 0n), 0n)
    assert.equal(gainOf(bought), BigInt(result.amount_out))
    const { refunded } = result
    const spent = refunded && !isAt(refunded, sold) ? 0n : BigInt(result.amount_in)
    assert.equal(gainOf(refunded ?? sold), BigInt(refunded?.amount ?? 0) - spent)
  }

  const tallied = () => {
    const shown: Record<string, number> = {}
    return {
      shown,
      add: (...names: string[]) => {
        for (const name of names) shown[name] = (shown[name] ?? 0) + 1
      },
    }
  }

  /** What has paid the first swap of each user. */
  const paid: string[] = []
  const firstSwap = async (person: Person) => {
    paid.push((await executed(person, usdcToPolygon)).result.tx_hash)
  }
  const swapOnce = async (person: Person, each: Case, endMs?: number): Promise<void> => {
    const held = await balancesOf(world, person)
    const foreignTx = paid[random(paid.length)]!
    const steps = each.steps({ random, otherToken: world.tokenOn(polygon, 'USDC.e'), foreignTx })
    await world.solver('/payouts', { steps, count: 1, user: person.evm })
    const { status, body } = await swapOf(
      person,
      { ...usdcToPolygon, amount: String(20_000_000 + random(30_000_000)) },
      { query: '' },
    )
    assert.equal(status, 200, JSON.stringify(body))
    const last = await assertReported(person, body.task_id, each, endMs)
    await assertMeasured(world, person, held, [last])
    const tokenAt = (chain: string) => ({ chain_id: chain, token_address: world.tokenOn(chain, 'USDC') })
    assertNamed(last, { sold: tokenAt(base), bought: tokenAt(polygon) })
  }

  test(`${swaps} swaps say what the chains show, and report what changes later`, async (t) => {
    const { shown, add } = tallied()
    const left = Array.from({ length: swaps }, (_, n) => cases[n % cases.length]!)
    const swapAll = async () => {
      const person = await createFundedPerson(gateway.url)
      await firstSwap(person)
      for (let each = left.shift(); each; each = left.shift()) {
        await swapOnce(person, each)
        add(each.name, each.ends)
      }
    }
    const slow = async (each: Case) => {
      const person = await createFundedPerson(gateway.url)
      await firstSwap(person)
      await swapOnce(person, each, slowEndMsMax)
      add(each.name, each.ends)
    }
    await Promise.all([
      ...Array.from({ length: swappers }, swapAll),
      ...(isNightly ? slowCases : []).flatMap((each) => Array.from({ length: slowEach }, () => slow(each))),
    ])
    t.diagnostic(JSON.stringify(shown))
  })

  const purchase = { chain_id_in: solana, token_in: 'USDC', token_out: 'JUP', amount_usd: '40' }
  const mintOf = (symbol: string) =>
    world.manifest.tokens[solana]!.find((each) => each.symbol === symbol)!.mint!
  const salesOf = async (person: Person) => {
    const { body } = await person.call<{ items: SwapBody[] }>('GET /v1/tasks?kind=hook_execute&limit=100')
    return body.items
  }
  /** Leaves the stop; what it answers with waits for the end of it. */
  const leaveStop = async (person: Person, each: Case): Promise<() => Promise<string>> => {
    const held = await balancesOf(world, person)
    const salesBefore = new Set((await salesOf(person)).map(({ task_id }) => task_id))
    const { status, body: bought } = await swapOf(person, {
      ...purchase,
      stop_loss: { price_percentage: '0.1' },
    })
    assert.deepEqual([status, bought.outcome], [200, 'executed'], JSON.stringify(bought))
    const [hookId] = (bought.result as SwapBody['result'] & { hook_ids: string[] }).hook_ids
    const foreignTx = bought.result.tx_hash
    const steps = each.steps({ random, otherToken: mintOf('PYUSD'), foreignTx })
    await world.solver('/payouts', { steps, count: 1, user: person.solana })
    return () => assertStop(person, each, { held, salesBefore, bought, hookId: hookId! })
  }
  type Left = { held: Held; salesBefore: Set<string>; bought: SwapBody; hookId: string }
  const assertStop = async (person: Person, each: Case, { held, salesBefore, bought, hookId }: Left) => {
    const ends = ['hook.filled', 'hook.failed']
    const events = await eventually(
      async () => {
        const all = await eventsOf(person, `types=hook.attempt_failed,${ends.join()}`)
        const own = all.filter(({ subject }) => subject?.id === hookId)
        return own.some(({ type }) => ends.includes(type)) ? own : undefined
      },
      `the stop, ${each.name}, has ended`,
      endMsMax,
    )
    const sales = (await salesOf(person)).filter(({ task_id }) => !salesBefore.has(task_id)).toReversed()
    // A sale that deposits nothing has met none of the payouts.
    const deposited = sales.filter(({ transactions }) => transactions.length > 0)
    const [first, second, ...more] = deposited
    assert.deepEqual(more, [])
    const reported = [await assertReported(person, first!.task_id, each)]
    if (second)
      reported.push(
        await assertReported(person, second.task_id, { name: each.name, ends: 'completed executed' }),
      )
    const end = events.at(-1)!
    const { status: saleStatus, error } = reported.at(-1)!
    const isFilled = saleStatus === 'completed'
    assert.equal(second !== undefined, each.stop === 'sells again', each.name)
    assert.deepEqual(
      [end.type, end.data.status, end.data.failure_reason],
      isFilled ? ['hook.filled', 'filled', null] : ['hook.failed', 'failed', error!.code],
      each.name,
    )
    assert.equal(events.length, sales.length, `${each.name}: each attempt is an event`)
    await assertMeasured(world, person, held, [bought, ...reported])
    const tokenAt = (symbol: string) => ({ chain_id: solana, token_address: mintOf(symbol) })
    for (const sale of reported) assertNamed(sale, { sold: tokenAt('JUP'), bought: tokenAt('USDC') })
    return end.type
  }

  test(`${stops} stops sell what the chains show, and sell again where everything came back`, async (t) => {
    const { shown, add } = tallied()
    const people = await Promise.all(cases.map(() => createFundedPerson(gateway.url)))
    let price = startPrice
    for (let round = 0; round < stopRounds; round += 1) {
      // The gateway may remember the last price for some seconds.
      await eventually(
        async () =>
          (await swapOf(people[0]!, { ...purchase, dryrun: true })).status === 200 ? true : undefined,
        'the price is the one that is displayed',
      )
      const stopEnds = await Promise.all(
        people.map((person, n) => leaveStop(person, cases[(n + round) % cases.length]!)),
      )
      price *= 0.8
      await world.price({ symbol: 'JUP', price_usd: price.toFixed(6) })
      for (const [n, end] of (await Promise.all(stopEnds.map((each) => each()))).entries())
        add(cases[(n + round) % cases.length]!.name, end)
    }
    t.diagnostic(JSON.stringify(shown))
  })
})
