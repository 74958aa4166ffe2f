/** Random swaps over all pairs and directions, with a realistic solver, while instances are killed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually, type Gateway, newAgent } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { assertMeasured, balancesOf, type EvmId, native, type SwapBody } from '../journeys/swap-users.ts'
import { type Person, personOf } from '../journeys/users.ts'
import { solana, type World, worldOf } from '../journeys/world.ts'
import { bySize, proofSeed } from '../proof/support/seed.ts'
import { type CrashApp, createCrashApp } from './crash-app.ts'
import { createGatewayPool } from './gateway-pool.ts'
import { randomOf } from './venue-traders.ts'

const users = bySize({ short: 3, full: 8, nightly: 10 })
const swapsPerUser = bySize({ short: 4, full: 25, nightly: 100 })
/** 200 swaps have not ended within their time on two processors yet. */
const size = {
  skip: bySize<string | false>({ short: false, full: 'runs short and nightly', nightly: false }),
}
const killEveryMs = 1_500
const answerMsMax = 60_000
const endMsMax = 120_000

/** What a request of a random amount may be refused with, once its gateway and the solver answer. */
const refusals = [
  'no_route',
  'insufficient_liquidity',
  'insufficient_balance',
  'conflict',
  'validation',
  'upstream_changed',
]
const evmIds: EvmId[] = ['1', '8453', '42161', '137']
const lamport = '11111111111111111111111111111111'
const solanaUsdc = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'
const solver = {
  evm: '0x647Ec5BC66514d9B3100c33bA2464be68972B410',
  solana: 'GsvUt13LU6Jn84Pm57EhSzjnScCo3sVUdMM2Mac1hXZs',
}
const depository = '0x4cD00E387622C35bDDB9b4c962C136462338BC31'

type Place = { chain: string; token: string }
type Random = () => number
const pick = <T>(random: Random, list: readonly T[]): T => list[Math.floor(random() * list.length)]!

const placesOf = (world: World): Place[] => [
  ...evmIds.flatMap((chain) => [
    { chain, token: native },
    ...world.manifest.tokens[chain]!.slice(0, 3).map(({ address }) => ({ chain, token: address! })),
  ]),
  { chain: solana, token: lamport },
  { chain: solana, token: solanaUsdc },
]

const keyOf = ({ chain, token }: Place) => `${chain} ${chain === solana ? token : token.toLowerCase()}`

/** A random request that the wallet can pay. */
async function randomSwap(world: World, person: Person, random: Random): Promise<object> {
  const held = await balancesOf(world, person)
  const places = placesOf(world)
  const from = pick(
    random,
    places.filter((place) => (held.get(keyOf(place)) ?? 0n) > 0n),
  )
  const to = pick(
    random,
    places.filter((place) => keyOf(place) !== keyOf(from)),
  )
  const units = held.get(keyOf(from))!
  // A part of a large balance, and at times all of a small one.
  const isLarge = units > 1_000_000_000n && from.token !== native && from.token !== lamport
  const amount = isLarge
    ? BigInt(5_000_000 + Math.floor(random() * 40_000_000))
    : pick(random, [units, units / 2n, units])
  return {
    chain_id_in: from.chain,
    chain_id_out: to.chain,
    token_in: from.token,
    token_out: to.token,
    amount: String(amount < units ? amount : units),
  }
}

type Live = () => Gateway[]

/** Repeats a request under its key, at any instance, until one of them has decided. */
async function decided(live: Live, person: Person, body: object, key: string): Promise<SwapBody | undefined> {
  for (let turn = 0, until = performance.now() + answerMsMax; performance.now() < until; turn++) {
    const ready = live()
    const gateway = ready[turn % Math.max(1, ready.length)]
    const reply =
      gateway &&
      (await person.call<SwapBody>('POST /v1/swap', { body, key, at: gateway.url }).catch(() => undefined))
    if (reply?.status === 200) return reply.body
    if (reply && reply.status < 500 && reply.status !== 429) {
      assert.ok(refusals.includes(String(reply.body.code)), JSON.stringify([body, reply.body]))
      return undefined
    }
    await delay(50)
  }
  // The solver may be away for a while: nothing was accepted then.
  return undefined
}

const ended = (live: Live, person: Person, id: string): Promise<SwapBody> =>
  eventually(
    async () => {
      const gateway = live()[0]
      const reply =
        gateway &&
        (await person.call<SwapBody>(`GET /v1/tasks/${id}`, { at: gateway.url }).catch(() => undefined))
      if (reply?.status !== 200) return undefined
      return ['pending', 'running'].includes(reply.body.status) ? undefined : reply.body
    },
    `swap ${id} has ended`,
    endMsMax,
  )

/** Units of each token over users, solver, depository and pools. */
async function totals(world: World, people: readonly Person[]): Promise<Map<string, bigint>> {
  const sums = new Map<string, bigint>()
  const add = (key: string, units: bigint) => sums.set(key, (sums.get(key) ?? 0n) + units)
  await Promise.all(
    evmIds.map(async (chain) => {
      const { usdc, factory } = world.manifest.contracts[chain] as unknown as Record<
        'usdc' | 'factory',
        string
      >
      const word = (address: string) => address.slice(2).toLowerCase().padStart(64, '0')
      const tokens = world.manifest.tokens[chain]!.map(({ address }) => address!)
      const pools = await Promise.all(
        tokens
          .filter((token) => token.toLowerCase() !== usdc.toLowerCase())
          .map(async (token) => {
            const call = { to: factory, data: `0xe6a43905${word(usdc)}${word(token)}` }
            const found = await world.rpc('eth_call', [call, 'latest'], world.manifest.urls.evm[chain])
            return `0x${String(found).slice(-40)}`
          }),
      )
      const holders = [...people.map(({ evm }) => evm), solver.evm, depository, ...pools]
      for (const token of tokens)
        for (const holder of holders) add(`${chain} ${token}`, await world.balance(chain, holder, token))
    }),
  )
  return sums
}

/** The solver gets its inventory of a chain with the first quote there. */
async function stockSolver(person: Person): Promise<void> {
  for (const [at, chain] of evmIds.entries()) {
    const body = {
      chain_id_in: chain,
      chain_id_out: evmIds[at + 1] ?? solana,
      token_in: 'USDC',
      token_out: 'USDC',
      amount: '20000000',
      dryrun: true,
    }
    const { status, body: quoted } = await person.call('POST /v1/swap', { body })
    assert.equal(status, 200, JSON.stringify(quoted))
  }
}

/** No id has two deposits on any chain, and each is of a task. */
async function assertDepositsOnce(world: World, app: CrashApp): Promise<number> {
  const { rows } = await app.admin.query<{ id: string }>(
    `select data ->> 'provider_request_id' as id from task where kind = 'swap'`,
  )
  const known = new Set(rows.map(({ id }) => id))
  const seen = new Set<string>()
  for (const chain of evmIds) {
    const filter = { address: depository, fromBlock: '0x0', toBlock: 'latest' }
    const logs = (await world.rpc('eth_getLogs', [filter], world.manifest.urls.evm[chain])) as {
      data: string
    }[]
    for (const { data } of logs) {
      const id = `0x${data.slice(-64)}`
      assert.ok(!seen.has(id), `${id} has two deposits`)
      assert.ok(known.has(id), `${id} is of no task`)
      seen.add(id)
    }
  }
  return seen.size
}

test(
  `${users * swapsPerUser} random swaps survive kills and a realistic solver, and every unit is accounted for`,
  size,
  async (t) => {
    const random = randomOf(proofSeed('swap storm'))
    const app = await createCrashApp()
    const pool = createGatewayPool(() =>
      app.gateway({ SPONSOR_USER_DAY: '5', POLICY_DAY_USD_MAX: '10000000' }),
    )
    t.after(async () => {
      await pool.close()
      await app[Symbol.asyncDispose]()
    })
    await pool.fillAll()
    const world = await worldOf(app.control)
    const { url } = pool.ready()[0]!
    const people: Person[] = []
    for (let n = 0; n < users; n++) {
      const person = await personOf(url, await newAgent(url))
      const isFunded = async () => {
        const { items } = (
          await person.call<{ items: { status: string }[] }>('GET /v1/tasks?kind=faucet_grant')
        ).body
        return items[0]?.status === 'completed' ? true : undefined
      }
      await eventually(isFunded, 'the faucet grant', 30_000)
      people.push(person)
    }
    await stockSolver(people[0]!)
    const [before, held] = await Promise.all([
      totals(world, people),
      Promise.all(people.map((person) => balancesOf(world, person))),
    ])
    await world.solver('/realism', {
      preset: 'realistic',
      quotesPerMinute: 0,
      readsPerMinute: 0,
      retracted: 0.05,
      busy: 0.1,
      html: 0.05,
      lostReply: 0.05,
    })

    let isOver = false
    const killing = (async () => {
      while (!isOver) {
        await delay(killEveryMs)
        if (!isOver) pool.killOne()
      }
    })()
    const done = await Promise.all(
      people.map(async (person, at) => {
        const tasks: SwapBody[] = []
        for (let n = 0; n < swapsPerUser; n++) {
          const body = await randomSwap(world, person, random)
          const accepted = await decided(pool.ready, person, body, `storm-${at}-${n}`)
          if (accepted) tasks.push(await ended(pool.ready, person, accepted.task_id))
        }
        return tasks
      }),
    ).finally(() => {
      isOver = true
    })
    await killing
    await pool.fillAll()

    const all = done.flat()
    for (const { status, outcome, error, task_id } of all)
      assert.ok(
        (status === 'completed' && outcome === 'executed') || (status === 'failed' && error !== null),
        `${task_id}: ${status} ${outcome}`,
      )
    for (const [index, person] of people.entries())
      await assertMeasured(world, person, held[index]!, done[index]!)
    const after = await totals(world, people)
    const wrapped = ['WETH', 'WPOL']
    // Wrapping makes units, except where the token is none of the native coin.
    for (const chain of evmIds)
      for (const { symbol, address } of world.manifest.tokens[chain]!)
        if (!wrapped.includes(symbol) || (symbol === 'WETH' && chain === '137'))
          assert.equal(
            after.get(`${chain} ${address}`),
            before.get(`${chain} ${address}`),
            `${symbol} on ${chain}`,
          )
    const deposits = await assertDepositsOnce(world, app)
    assert.equal(await ledgerDrift(app.admin), 0)
    const count = (outcome: string) => all.filter((each) => each.outcome === outcome).length
    t.diagnostic(
      `${all.length} swaps accepted, ${count('executed')} executed, ${deposits} deposits on EVM chains, ${pool.kills()} kills`,
    )
    assert.ok(count('executed') >= (users * swapsPerUser) / 3, `only ${count('executed')} were executed`)
  },
)
