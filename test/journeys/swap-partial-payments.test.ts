/** A provider that pays otherwise than it quoted: what a swap and a stop say is what their chains show. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { bySize, proofSeed } from '../proof/support/seed.ts'
import {
  assertMeasured,
  balancesOf,
  createFundedPerson,
  type SwapBody,
  swapOf,
  usdcToPolygon,
} from './swap-users.ts'
import type { Person } from './users.ts'
import { polygon, solana, type World, worldOf } from './world.ts'

const swaps = bySize({ short: 12, full: 36, nightly: 120 })
const endMsMax = 120_000

type Step = {
  type: 'fill' | 'refund'
  shareBps: number
  afterMs: number
  status: 'pending' | 'success' | 'refund' | 'failure'
  names: 'all' | 'last' | 'none'
  currency?: string
  foreignTx?: string
  failReason?: string
  refundFailReason?: string
}
type Random = (below: number) => number
type Case = {
  name: string
  steps: (random: Random) => Step[]
  /** How it ends; `later`: what a payment after the end makes of it. */
  ends: string
  later?: { fill: boolean; refund: boolean }
}

const randomOf = (seed: number): Random => {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

const pay = (
  type: Step['type'],
  shareBps: number,
  status: Step['status'],
  rest: Partial<Step> = {},
): Step => ({ type, shareBps, status, afterMs: 100, names: 'all', ...rest })
/** What a provider says without a payment. It goes on naming what it has paid: a word that nobody asked for is lost. */
const say = (status: Step['status'], rest: Partial<Step> = {}) => pay('fill', 0, status, rest)

/** The refund would cost more than the deposit, says the provider: the swap ends within seconds. */
const hopeless = { failReason: 'SLIPPAGE', refundFailReason: 'AMOUNT_TOO_LOW_TO_REFUND' }

/** Without a failure that lasts, what is short ends after ten minutes: here the rest follows before. */
const cases: Case[] = [
  { name: 'as quoted', steps: () => [pay('fill', 10_000, 'success')], ends: 'completed executed' },
  {
    name: 'in parts',
    steps(random) {
      const first = 1_000 + random(5_000)
      const pause = { afterMs: 500 + random(2_000) }
      return [pay('fill', first, 'success'), pay('fill', 10_000 - first, 'success', pause)]
    },
    ends: 'completed executed',
  },
  {
    name: 'twice',
    steps: () => [pay('fill', 10_000, 'pending', { names: 'none' }), pay('fill', 10_000, 'success')],
    ends: 'completed executed',
  },
  {
    name: 'a little, and the rest back',
    steps(random) {
      const share = 500 + random(4_000)
      return [pay('fill', share, 'success'), pay('refund', 9_980 - share, 'refund', { afterMs: 800 })]
    },
    ends: 'failed partial refunded',
  },
  {
    name: 'dust back, and then the rest',
    steps: () => [pay('refund', 0.01, 'refund'), pay('refund', 9_990, 'refund', { afterMs: 900 })],
    ends: 'failed partial refunded',
  },
  {
    name: 'a payment of somebody else, and everything back',
    steps: () => [say('success'), pay('refund', 10_000, 'refund', { afterMs: 1_500 })],
    ends: 'failed partial refunded',
  },
  {
    name: 'late, after a failure',
    steps: () => [say('failure', hopeless), pay('fill', 10_000, 'success', { afterMs: 6_000 })],
    ends: 'failed partial tx_failed',
    later: { fill: true, refund: false },
  },
  {
    name: 'in parts of both, after a failure',
    steps: () => [
      say('failure', hopeless),
      pay('fill', 4_000, 'success', { afterMs: 6_000 }),
      pay('refund', 3_000, 'refund', { afterMs: 4_000 }),
    ],
    ends: 'failed partial tx_failed',
    later: { fill: true, refund: true },
  },
]

describe('a provider pays otherwise than it quoted', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    // With a key the solver says that a refund would cost too much: a failure then lasts for seconds.
    gateway = await freshGateway(
      { LIFI_URL: 'off', RELAY_API_KEY: 'lies' },
      { ownWorld: 'its solver pays otherwise than it quoted' },
    )
    world = await worldOf(gateway.world)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  type Late = { type: string; task_id: string; data: Record<string, string> }
  const lateEvents = async (person: Person, id: string): Promise<Late[]> => {
    const { body } = await person.call<{ events: Late[] }>(
      'GET /v1/notifications?types=swap.late_payment&limit=100',
    )
    return body.events.filter(({ task_id }) => task_id === id)
  }

  /** One unit that a stranger sends, as the solver may name it. */
  const giftTo = async (person: Person) => {
    const usdc = world.manifest.tokens[polygon]!.find(({ symbol }) => symbol === 'USDC')!
    // It is counted as what the swap has brought.
    await fetch(`${gateway.world}/faucet/fund`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ chain_id: polygon, address: person.evm, token: 'USDC', amount: '0.000001' }),
    })
    const topics = [
      '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
      null,
      `0x${person.evm.slice(2).toLowerCase().padStart(64, '0')}`,
    ]
    const filter = { fromBlock: '0x0', toBlock: 'latest', address: usdc.address, topics }
    const logs = await world.rpc('eth_getLogs', [filter], world.manifest.urls.evm[polygon])
    return (logs as { transactionHash: string }[]).at(-1)!.transactionHash
  }

  test(`${swaps} swaps say what the chains show, and report what changes later`, async (t) => {
    const random = randomOf(proofSeed('partial payments'))
    const person = await createFundedPerson(gateway.url)
    const shown: Record<string, number> = {}
    for (let n = 0; n < swaps; n += 1) {
      const each = cases[n % cases.length]!
      const isOfOther = each.name.includes('somebody else')
      const held = await balancesOf(world, person)
      const foreignTx = isOfOther ? await giftTo(person) : undefined
      const steps = each
        .steps(random)
        .map((step) => (step.shareBps === 0 && foreignTx ? { ...step, foreignTx } : step))
      await world.solver('/payouts', { steps, count: 1 })
      const { body } = await swapOf(person, {
        ...usdcToPolygon,
        amount: String(20_000_000 + random(30_000_000)),
      })
      const done = (await person.ended(body.task_id, endMsMax)) as unknown as SwapBody
      const { status, outcome, error } = done
      assert.equal([status, outcome, error?.code].filter(Boolean).join(' '), each.ends, JSON.stringify(done))
      const reported = BigInt(done.result.amount_out)
      assert.equal(status === 'completed', reported >= BigInt(done.result.amount_out_min), each.name)
      const { later } = each
      const types = later ? Object.entries(later).flatMap(([type, is]) => (is ? [type] : [])) : []
      const events = await eventually(
        async () => {
          const found = await lateEvents(person, done.task_id)
          return types.every((type) => found.some(({ data }) => data.type === type)) ? found : undefined
        },
        `${each.name} is reported`,
        endMsMax,
      )
      const last = (await person.task(done.task_id)) as unknown as SwapBody
      assert.deepEqual([last.status, last.outcome], [status, outcome])
      const sumOf = (type: string) =>
        events.reduce((sum, { data }) => sum + (data.type === type ? BigInt(data.amount!) : 0n), 0n)
      assert.equal(BigInt(last.result.amount_out), reported + sumOf('fill'), each.name)
      await assertMeasured(world, person, held, [last])
      shown[each.name] = (shown[each.name] ?? 0) + 1
    }
    t.diagnostic(JSON.stringify(shown))
  })

  test('a stop whose sale is paid with one unit of somebody else is not filled, and sells again', async () => {
    const person = await createFundedPerson(gateway.url)
    const bought = { chain_id_in: solana, token_in: 'USDC', token_out: 'JUP', amount_usd: '40' }
    const { body } = await swapOf(person, bought)
    assert.equal(body.outcome, 'executed', JSON.stringify(body))
    await world.solver('/payouts', {
      steps: [pay('fill', 0.01, 'success'), pay('refund', 10_000, 'refund', { afterMs: 4_000 })],
      count: 1,
    })
    const left = await person.call('POST /v1/hooks', {
      body: {
        chain_id: solana,
        token_address: 'JUP',
        stop_losses: [{ price_percentage: '0.1' }],
        reference: 'mark',
      },
    })
    assert.equal(left.status, 200, JSON.stringify(left.body))
    await world.price({ symbol: 'JUP', price_usd: '0.7' })
    type Events = { events: { type: string; task_id: string | null }[] }
    const types = await eventually(
      async () => {
        const { body: page } = await person.call<Events>(
          'GET /v1/notifications?types=hook.attempt_failed,hook.filled&limit=100&after=0',
        )
        const found = page.events.map(({ type }) => type)
        return found.includes('hook.filled') ? found : undefined
      },
      'the stop is filled',
      endMsMax,
    )
    assert.ok(types.indexOf('hook.attempt_failed') < types.indexOf('hook.filled'), types.join())
    assert.ok(types.includes('hook.attempt_failed'), types.join())
  })
})
