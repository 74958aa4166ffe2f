import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eventually, freshGateway, http } from '../harness/gateway.ts'
import { assertMeasured, balancesOf, createFundedPerson, executed, native } from './swap-users.ts'
import type { Person, TaskBody } from './users.ts'
import { base, polygon, solana, type World, worldOf } from './world.ts'

const arbitrum = '42161'
const arbitrumNode = 'evm:42161'

type Leg = { role: string; status: string; chain_id: string; amount: string; tx_hash: string | null }
type Remaining = {
  place: string
  chain_id: string
  token_address: string
  symbol: string
  amount: string
  account: string
  tx_hash: string | null
}
type FundingBody = Omit<TaskBody, 'result' | 'balance_changes'> & {
  result: {
    amount: string
    amount_usd: string
    fee_usd: string
    withdrawn_usd: string
    chain_id: string
    token_address: string
    tx_hash: string | null
    credited_at: string | null
    legs: Leg[]
    remaining: Remaining | null
  }
  balance_changes: { chain_id: string; token_address: string; symbol: string; amount: string }[]
  progress: { step: number; of: number; text: string } | null
  detail: unknown
}
type Options = { key?: string; query?: string }

const wait = '?wait=true&timeout=60'
const fund = (person: Person, body: object, { query = wait, ...options }: Options = {}) =>
  person.call<FundingBody>(`POST /v1/perp/fund${query}`, { body, ...options })
const withdraw = (person: Person, body: object, { query = wait, ...options }: Options = {}) =>
  person.call<FundingBody>(`POST /v1/perp/withdraw${query}`, { body, ...options })

const asExecuted = ({ status, body }: { status: number; body: FundingBody }): FundingBody => {
  assert.deepEqual([status, body.status, body.outcome], [200, 'completed', 'executed'], JSON.stringify(body))
  return body
}
const rolesOf = ({ result }: FundingBody) => result.legs.map(({ role, status }) => [role, status])
const refused = ({ status, body }: { status: number; body: FundingBody }) => [
  status,
  status === 422
    ? (body.detail as { type: string; loc: string[] }[]).map(({ type, loc }) => [type, loc.at(-1)])[0]
    : body.code,
]

describe('a user funds the venue from any chain and withdraws to any', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway(
      { LIFI_URL: 'off', RATE_MONEY: '0', RATE_EXIT: '0' },
      { ownWorld: 'the solver refuses, refunds and fills late' },
    )
    world = await worldOf(gateway.world)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const atVenue = async ({ evm }: Person): Promise<string> => {
    const { body } = await http<{ accounts: { rawUsd: string }[] }>(
      `${gateway.world}/venues/hyperliquid/effects?user=${evm}`,
    )
    return body.accounts[0]?.rawUsd ?? '0'
  }
  const usd = (units: string) => String(Number(units) / 1_000_000)
  const onArbitrum = async (person: Person) =>
    world.balance(arbitrum, person.evm, world.tokenOn(arbitrum, 'USDC'))
  const sent = (person: Person, id: string, word: string) =>
    eventually(async () => {
      const { state, status, transactions } = await person.task(id)
      assert.ok(['pending', 'running'].includes(status), JSON.stringify([word, state, transactions]))
      return state === word ? true : undefined
    }, `the task is ${word}`)

  test('USDC on Base becomes collateral in one task, without a native coin anywhere', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    for (const chain of ['1', base, arbitrum, polygon])
      assert.equal(held.get(`${chain} ${native.toLowerCase()}`), 0n)
    const done = asExecuted(await fund(person, { amount: '50000000', source_chain_id: base }))
    assert.deepEqual(rolesOf(done), [
      ['swap', 'completed'],
      ['deposit', 'completed'],
    ])
    const [swap, deposit] = done.result.legs
    assert.equal(swap!.amount, done.result.amount)
    assert.equal(deposit!.amount, done.result.amount)
    assert.equal(done.result.remaining, null)
    assert.equal(done.transactions.length, 3, 'the deposit of the swap, its fill, the transfer to the bridge')
    assert.equal(Number(await atVenue(person)), Number(usd(done.result.amount)))
    assert.equal(
      await onArbitrum(person),
      held.get(`${arbitrum} ${world.tokenOn(arbitrum, 'USDC').toLowerCase()}`),
    )
    await assertMeasured(world, person, held, [done])
  })

  test('native ETH on Base and USDC on Solana become collateral', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const eth = await executed(person, {
      chain_id_in: base,
      token_in: 'USDC',
      token_out: 'ETH',
      amount: '60000000',
    })
    const dollars = await executed(person, {
      chain_id_in: base,
      chain_id_out: solana,
      token_in: 'USDC',
      token_out: 'USDC',
      amount: '40000000',
    })
    const fromEth = asExecuted(
      await fund(person, { amount: eth.result.amount_out, source_chain_id: base, source_token: native }),
    )
    const fromSolana = asExecuted(await fund(person, { amount_usd: '30', source_chain_id: 'solana' }))
    assert.equal(
      Number(await atVenue(person)),
      Number(usd(String(BigInt(fromEth.result.amount) + BigInt(fromSolana.result.amount)))),
    )
    await assertMeasured(world, person, held, [eth, dollars, fromEth, fromSolana])
  })

  test('a token on the chain of the bridge is swapped there: two batches of one task on one chain', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const eth = await executed(person, {
      chain_id_in: arbitrum,
      token_in: 'USDC',
      token_out: 'ETH',
      amount: '50000000',
    })
    const done = asExecuted(await fund(person, { amount: eth.result.amount_out, source_token: 'ETH' }))
    assert.deepEqual(
      done.transactions.map(({ status }) => status),
      ['finalized', 'finalized'],
    )
    assert.equal(Number(await atVenue(person)), Number(usd(done.result.amount)))
    await assertMeasured(world, person, held, [eth, done])
  })

  test('what cannot reach the venue is refused before a task exists', async () => {
    const person = await createFundedPerson(gateway.url)
    const tasks = await person.taskCount()
    const source = { source_chain_id: base }
    assert.deepEqual(refused(await fund(person, { amount: '5000000', ...source })), [
      422,
      ['below_minimum', 'amount'],
    ])
    assert.deepEqual(refused(await fund(person, { amount_usd: '20', source_chain_id: '99' })), [
      422,
      ['unsupported_chain', 'source_chain_id'],
    ])
    assert.deepEqual(refused(await fund(person, { amount_usd: '20', ...source, source_token: 'NOPE' })), [
      422,
      ['unsupported_asset', 'source_token'],
    ])
    assert.deepEqual(refused(await fund(person, { amount_usd: '20', amount: '1', ...source })), [
      422,
      ['exactly_one_of', 'amount_usd'],
    ])
    assert.deepEqual(refused(await fund(person, { amount: '20000000000', ...source })), [
      409,
      'insufficient_balance',
    ])
    for (const [errorCode, code] of [
      ['NO_SWAP_ROUTES_FOUND', 'no_route'],
      ['INSUFFICIENT_LIQUIDITY', 'insufficient_liquidity'],
    ] as const) {
      await world.solver('/quote-error', { errorCode, status: 400 })
      assert.deepEqual(refused(await fund(person, { amount_usd: '20', ...source })), [409, code])
      await world.solver('/quote-error', { errorCode, status: 400 })
      assert.deepEqual(refused(await withdraw(person, { amount_usd: '20', destination_chain_id: polygon })), [
        409,
        code,
      ])
    }
    await person.call('PUT /v1/policy', { body: { recipients: [] } })
    assert.deepEqual(refused(await fund(person, { amount_usd: '20', ...source })), [403, 'policy_denied'])
    assert.equal(await person.taskCount(), tasks)
  })

  test('a swap that is refunded moves nothing to the venue, and the result says where the money is', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    await world.solver('/force', { failReason: 'SLIPPAGE' })
    const { body: done } = await fund(person, { amount: '50000000', source_chain_id: base })
    assert.deepEqual([done.status, done.error?.code], ['failed', 'refunded'], JSON.stringify(done))
    assert.deepEqual(rolesOf(done), [
      ['swap', 'failed'],
      ['deposit', 'not_started'],
    ])
    const { remaining, amount } = done.result
    const lost = 50_000_000n - BigInt(remaining!.amount)
    assert.equal(done.outcome, lost === 0n ? 'not_executed' : 'partial')
    assert.deepEqual(
      [amount, remaining!.place, remaining!.chain_id, remaining!.symbol, remaining!.account],
      ['0', 'wallet', base, 'USDC', person.evm],
    )
    assert.equal(Number(await atVenue(person)), 0)
    await assertMeasured(world, person, held, [done])
  })

  test('a lost reply and a repeated request make one task', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    const body = { amount: '30000000', source_chain_id: base }
    const first = await fund(person, body, { key: 'one', query: '' })
    // The transfer to the bridge is sent, and its reply is lost.
    await world.fault(arbitrumNode, { drop_reply: true, methods: ['eth_sendRawTransaction'], count: 2 })
    const again = asExecuted(await fund(person, body, { key: 'one' }))
    assert.ok((await world.faultHits(arbitrumNode)) > 0, 'a reply was lost')
    await world.heal()
    assert.equal(again.task_id, first.body.task_id)
    assert.equal(Number(await atVenue(person)), Number(usd(again.result.amount)))
    await assertMeasured(world, person, held, [again])
  })

  test('a deposit that the policy stops after the swap leaves the dollars in the wallet, and says so', async () => {
    const person = await createFundedPerson(gateway.url)
    const held = await balancesOf(world, person)
    await world.solver('/realism', { fillLag: 2_000 })
    const { body: accepted } = await fund(
      person,
      { amount: '50000000', source_chain_id: base },
      { query: '' },
    )
    await sent(person, accepted.task_id, 'settling')
    assert.equal((await person.call('PUT /v1/policy', { body: { recipients: [] } })).status, 200)
    const done = (await person.ended(accepted.task_id, 60_000)) as unknown as FundingBody
    await world.solver('/realism', { preset: 'quiet' })
    assert.deepEqual(
      [done.status, done.outcome, done.error?.code],
      ['failed', 'partial', 'policy_denied'],
      JSON.stringify(done),
    )
    assert.deepEqual(rolesOf(done), [
      ['swap', 'completed'],
      ['deposit', 'failed'],
    ])
    const { remaining } = done.result
    assert.deepEqual(
      [remaining!.place, remaining!.chain_id, remaining!.symbol, remaining!.account],
      ['wallet', arbitrum, 'USDC', person.evm],
    )
    assert.equal(await onArbitrum(person), 10_000_000_000n + BigInt(remaining!.amount))
    assert.equal(Number(await atVenue(person)), 0)
    assert.match(done.error!.message, /are in your wallet on Arbitrum/)
    await assertMeasured(world, person, held, [done])
  })

  test('a task is cancelled before its first leg is signed, and not between its legs', async () => {
    const person = await createFundedPerson(gateway.url)
    await world.solver('/realism', { fillLag: 1_500 })
    const { body: accepted } = await fund(
      person,
      { amount: '20000000', source_chain_id: base },
      { query: '' },
    )
    await sent(person, accepted.task_id, 'settling')
    const { status, body } = await person.call(`POST /v1/tasks/${accepted.task_id}/cancel`)
    assert.deepEqual([status, body.code], [409, 'not_cancellable'])
    const done = await person.ended(accepted.task_id, 60_000)
    await world.solver('/realism', { preset: 'quiet' })
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
  })

  /** With 500 dollars at the venue. */
  const trader = async () => {
    const person = await createFundedPerson(gateway.url)
    assert.equal((await fund(person, { amount_usd: '500' })).body.outcome, 'executed')
    return { person, held: await balancesOf(world, person) }
  }

  test('collateral is withdrawn to USDC on Polygon, to native ETH on Base and to USDC on Solana', async () => {
    const { person, held } = await trader()
    const all: FundingBody[] = []
    for (const [chain, token] of [
      [polygon, undefined],
      [base, 'ETH'],
      ['solana', 'USDC'],
      [arbitrum, 'ETH'],
    ] as const) {
      const done = asExecuted(
        await withdraw(person, {
          amount_usd: '50',
          destination_chain_id: chain,
          ...(token && { destination_token: token }),
        }),
      )
      assert.deepEqual(rolesOf(done), [
        ['withdrawal', 'completed'],
        ['swap', 'completed'],
      ])
      assert.equal(done.result.chain_id, chain === 'solana' ? solana : chain)
      assert.ok(
        Number(done.result.amount_usd) > 45 && Number(done.result.amount_usd) <= 49.5,
        JSON.stringify(done.result),
      )
      assert.equal(done.result.remaining, null)
      all.push(done)
    }
    assert.equal(Number(await atVenue(person)), 300)
    await assertMeasured(world, person, held, all)
  })

  test('a withdrawal whose route has gone leaves the dollars in the wallet, and says so', async () => {
    const { person, held } = await trader()
    await world.fault(arbitrumNode, { latency_ms: 1_500, methods: ['eth_getLogs'] })
    const { body: accepted } = await withdraw(
      person,
      { amount_usd: '50', destination_chain_id: polygon },
      { query: '' },
    )
    const noRoute = { errorCode: 'NO_SWAP_ROUTES_FOUND', status: 400 }
    await world.solver('/quote-error', { ...noRoute, count: 100_000 })
    const done = (await person.ended(accepted.task_id, 60_000)) as unknown as FundingBody
    await world.heal()
    await world.solver('/quote-error', noRoute)
    assert.deepEqual(refused(await fund(person, { amount_usd: '20', source_chain_id: base })), [
      409,
      'no_route',
    ])
    assert.deepEqual(
      [done.status, done.outcome, done.error?.code],
      ['failed', 'partial', 'no_route'],
      JSON.stringify(done),
    )
    assert.deepEqual(rolesOf(done), [
      ['withdrawal', 'completed'],
      ['swap', 'failed'],
    ])
    const { remaining, legs } = done.result
    assert.deepEqual(
      [remaining!.place, remaining!.chain_id, remaining!.amount, remaining!.tx_hash],
      ['wallet', arbitrum, '49000000', legs[0]!.tx_hash],
    )
    await assertMeasured(world, person, held, [done])
  })

  test('a swap of a payout that is refunded is a part of the withdrawal', async () => {
    const { person, held } = await trader()
    await world.solver('/force', { failReason: 'SOLVER_CAPACITY_EXCEEDED' })
    const { body: done } = await withdraw(person, { amount_usd: '50', destination_chain_id: polygon })
    assert.deepEqual(
      [done.status, done.outcome, done.error?.code],
      ['failed', 'partial', 'refunded'],
      JSON.stringify(done),
    )
    assert.deepEqual([done.result.remaining!.place, done.result.remaining!.chain_id], ['wallet', arbitrum])
    await assertMeasured(world, person, held, [done])
  })

  test('limits that are tightened after the acceptance stop the swap of a payout', async () => {
    const { person, held } = await trader()
    await world.fault(arbitrumNode, { latency_ms: 1_500, methods: ['eth_getLogs'] })
    const { body: accepted } = await withdraw(
      person,
      { amount_usd: '50', destination_chain_id: polygon },
      { query: '' },
    )
    assert.equal((await person.call('PUT /v1/policy', { body: { chains: [arbitrum, base] } })).status, 200)
    const done = (await person.ended(accepted.task_id, 60_000)) as unknown as FundingBody
    await world.heal()
    assert.deepEqual(
      [done.status, done.outcome, done.error?.code],
      ['failed', 'partial', 'policy_denied'],
      JSON.stringify(done),
    )
    assert.equal(done.result.remaining!.amount, '49000000')
    await assertMeasured(world, person, held, [done])
    assert.deepEqual(refused(await withdraw(person, { amount_usd: '50', destination_chain_id: polygon })), [
      403,
      'policy_denied',
    ])
    assert.equal((await withdraw(person, { amount_usd: '50' })).body.outcome, 'executed')
  })
})
