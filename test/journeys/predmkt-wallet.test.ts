import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { contracts } from '#world/polymarket/chain/addresses.ts'
import { operatorOf } from '../harness/admin.ts'
import { dataFolder, eventually, freshGateway } from '../harness/gateway.ts'
import {
  accept,
  atVenue,
  cashOf,
  type Ended,
  executed,
  forgetRelayed,
  type Market,
  marketBy,
  micros,
  moveOutcomeShares,
  positionOf,
  predictionVenue,
  run,
  sellable,
  sendAs,
  setUp,
  statusOf,
  word,
} from './predmkt-calls.ts'
import { createFundedPerson } from './users.ts'
import { base, polygon, solana, type World, worldOf } from './world.ts'

describe('the wallet of a user at the prediction market', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  let database: pg.Pool
  before(async () => {
    gateway = await freshGateway(
      { RATE_MONEY: '0', RATE_EXIT: '0' },
      { ownWorld: 'the venue pauses a dollar, restarts, and shares are moved' },
    )
    world = await worldOf(gateway.world)
    database = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
  })
  after(async () => {
    await database?.end()
    await gateway?.[Symbol.asyncDispose]()
  })

  const venue = (method: string, path: string, body?: object) =>
    predictionVenue(gateway.world)(method, path, body)
  const setUpPerson = async () => {
    const person = await createFundedPerson(gateway.url)
    await setUp(person)
    return person
  }

  test('shares that came from elsewhere are listed without a cost, and those that left are not', async () => {
    const [person, other] = await Promise.all([setUpPerson(), setUpPerson()])
    await executed(person, '/predmkt/fund-safe', { amount_usd: '10' })
    const { body } = await person.call<{ markets: Market[] }>('GET /predmkt/markets?limit=50')
    const market = body.markets.find((each) => each.protocol === 'v1' && !each.neg_risk)!
    const outcomeId = market.outcomes[0]!.outcome_id
    const order = { outcome_id: outcomeId, side: 'BUY', order_type: 'FOK', amount_usd: '5' }
    await executed(person, '/predmkt/order', order)
    const shares = (await atVenue(person)).find(({ kind }) => kind === 'outcome_token')!
    const [from, to] = await Promise.all([statusOf(person), statusOf(other)])
    const units = BigInt(shares.amount)
    await moveOutcomeShares(world, { from: from.safe_address, to: to.safe_address, market, outcomeId, units })
    const arrived = await eventually(async () => positionOf(other, outcomeId), 'the venue lists the shares')
    assert.deepEqual([arrived.size, arrived.cost_usd, arrived.unrealized_usd], [shares.balance, null, null])
    const [held] = await atVenue(other)
    assert.deepEqual([held?.kind, held?.amount, held?.cost_basis_usd], ['outcome_token', shares.amount, null])
    assert.equal(await positionOf(person, outcomeId), undefined)
  })

  test('what lies in a wallet of an earlier kind moves to the new one, and missing approvals are completed', async () => {
    const [person, donor] = await Promise.all([createFundedPerson(gateway.url), setUpPerson()])
    await executed(donor, '/predmkt/fund-safe', { amount_usd: '20' })
    const slugs = [
      'fed-cuts-rates-in-december',
      'ada-winter-wins-the-mayoral-race',
      'new-phone-before-march',
      'alpha-is-the-largest-company',
    ]
    const markets = await Promise.all(slugs.map((slug) => marketBy(donor, slug)))
    for (const { outcomes } of markets) {
      const [yes] = outcomes
      const order = { outcome_id: yes!.outcome_id, side: 'BUY', order_type: 'FOK', amount_usd: '4' }
      await executed(donor, '/predmkt/order', order)
    }
    const { safe_address: from } = await statusOf(donor)
    const control = predictionVenue(gateway.world)
    const { safe } = await control<{ safe: string }>('POST', '/safe', { owner: person.evm })
    const shares = (await atVenue(donor)).filter(({ kind }) => kind === 'outcome_token')
    assert.equal(shares.length, slugs.length)
    for (const each of shares) {
      const units = BigInt(each.amount) / 2n
      const market = markets.find(({ outcomes }) =>
        outcomes.some(({ outcome_id: id }) => id === each.outcome_id),
      )!
      await moveOutcomeShares(world, { from, to: safe, market, outcomeId: each.outcome_id!, units })
    }
    const dollars = { pusd: '11.000001', usdc: '7.5', usdce: '5' }
    for (const [token, amount] of Object.entries(dollars))
      await venue('POST', '/credit', { wallet: safe, token, amount })
    const balancesOf = (wallet: string) =>
      control<Record<'pusd' | 'usdc' | 'usdce', string> & { shares: Record<string, string> }>(
        'GET',
        `/balances?wallet=${wallet}&tokens=${shares.map(({ outcome_id: id }) => id).join()}`,
      )
    const before = await balancesOf(safe)
    assert.deepEqual(
      Object.values(before.shares).map(micros),
      shares.map(({ amount }) => BigInt(amount) / 2n),
    )

    await person.call('POST /predmkt/disclaimer/acknowledge', { body: {} })
    const { result } = await executed(person, '/predmkt/setup/v2')
    const { safe_address: wallet } = await statusOf(person)
    assert.deepEqual(
      [result.setup_complete, result.v2_complete, result.wallet_kind, result.safe_address],
      [true, true, 'deposit_wallet', wallet],
    )
    assert.notEqual(wallet.toLowerCase(), safe.toLowerCase())
    const empty = await balancesOf(safe)
    assert.deepEqual([empty.pusd, empty.usdc, empty.usdce, ...Object.values(empty.shares)].map(micros), [
      0n,
      0n,
      0n,
      0n,
      0n,
      0n,
      0n,
    ])
    const moved = await balancesOf(wallet)
    assert.deepEqual(moved.shares, before.shares)
    const cash = Object.values(dollars).reduce((sum, amount) => sum + micros(amount), 0n)
    assert.deepEqual([micros(moved.pusd), await cashOf(person)], [cash, cash])
    for (const { outcome_id: id } of shares) {
      const position = await eventually(async () => positionOf(person, id!), 'the venue lists the shares')
      assert.equal(micros(position.size), micros(before.shares[id!]!))
    }

    // The approvals of a wallet that was set up before the second protocol came.
    const approval = `0xa22cb465${word(contracts.exchangeV3)}${word('0x0')}`
    await sendAs(world, { from: wallet, to: contracts.positionManager, data: approval })
    // What people are shown may be some seconds old.
    await eventually(
      async () => (await statusOf(person)).protocols.v2 === false || undefined,
      'the missing approval is seen',
    )
    const { v2_complete: isComplete, protocols } = (await statusOf(person)) as unknown as Record<
      string,
      unknown
    >
    assert.deepEqual([isComplete, protocols], [false, { v1: true, v2: false }])
    await executed(person, '/predmkt/setup/v2')
    assert.deepEqual((await statusOf(person)).protocols, { v1: true, v2: true })
    for (const { outcomes } of markets) {
      const id = outcomes[0]!.outcome_id
      const amount = String(Number(sellable(before.shares[id]!)) / 1e6)
      const sale = { outcome_id: id, side: 'SELL', order_type: 'FAK', amount_shares: amount }
      await executed(person, '/predmkt/order', sale)
    }
  })

  test('money comes and goes by any chain, also while the venue takes one of its dollars alone', async () => {
    const person = await setUpPerson()
    const funds = [
      { amount_usd: '30' },
      { amount_usd: '20', source_chain_id: solana, source_token_address: 'USDC' },
    ]
    await venue('POST', '/ramp', { ramp: 'onramp', asset: 'usdc', state: 'paused' })
    let cash = 0n
    for (const body of funds) {
      const funded = await executed(person, '/predmkt/fund-safe', body)
      cash += micros(funded.result.amount_usd!)
      assert.equal(await cashOf(person), cash)
    }
    await venue('POST', '/ramp', { ramp: 'onramp', asset: 'usdc', state: 'open' })

    const usdc = world.manifest.contracts[base]!.usdc
    const places = [
      { body: { destination_chain_id: base }, balance: () => world.balance(base, person.evm, usdc) },
      { body: { token: 'coin' }, balance: () => world.balance(polygon, person.evm) },
    ]
    for (const { body, balance } of places) {
      const before = await balance()
      const { result } = await executed(person, '/predmkt/withdraw', { amount_usdc: '10', ...body })
      assert.equal((await balance()) - before, BigInt(result.amount!), JSON.stringify(result))
      assert.ok(micros(result.amount_usd!) > micros('9'), JSON.stringify(result))
      cash -= micros('10')
      assert.equal(await cashOf(person), cash)
    }
  })

  test('money whose second leg is refused for its gas stays in the own wallet, and the task says so', async () => {
    const person = await setUpPerson()
    await executed(person, '/predmkt/fund-safe', { amount_usd: '30' })
    const usdc = world.manifest.contracts[polygon]!.usdc
    const usdcThere = () => world.balance(polygon, person.evm, usdc)
    const was = await usdcThere()
    /** What a sponsor pays for the user today on Polygon is used up. */
    const spendGas = () =>
      database.query(
        `update sponsor_day set wei = wei + 1e21 where chain_id = '137' and user_id =
           (select user_id from wallet where lower(address) = lower($1))`,
        [person.evm],
      )
    await venue('POST', '/realism', { relayerLag: { rate: 1, minMs: 3_000, maxMs: 3_000 } })
    const body = { amount_usdc: '10', destination_chain_id: base }
    const { body: accepted } = await person.call<Ended>('POST /predmkt/withdraw', { body })
    await spendGas()
    const withdrawn = (await person.ended(accepted.task_id)) as unknown as Ended
    assert.deepEqual([withdrawn.status, withdrawn.outcome], ['failed', 'partial'], JSON.stringify(withdrawn))
    assert.match(withdrawn.error!.message, /gas budget is used up.* 10 USDC are in your wallet on Polygon/)
    assert.equal((await usdcThere()) - was, micros('10'))

    await venue('POST', '/realism', { preset: 'quiet' })
    const before = await usdcThere()
    const terms = { amount_usd: '20', source_chain_id: base }
    const funded = await run(person, '/predmkt/fund-safe', terms)
    assert.deepEqual([funded.status, funded.outcome], ['failed', 'partial'], JSON.stringify(funded))
    assert.match(funded.error!.message, /gas budget is used up.* USDC are in your wallet on Polygon/)
    const { remaining } = funded.result as unknown as { remaining: { place: string; amount: string } }
    assert.deepEqual([remaining.place, BigInt(remaining.amount)], ['wallet', (await usdcThere()) - before])
  })

  test('the status says what the venue takes, and the key of a suspended user is revoked until the next set-up', async () => {
    const person = await setUpPerson()
    await executed(person, '/predmkt/fund-safe', { amount_usd: '10' })
    const market = await marketBy(person, 'recession-declared-next-year')
    const order = { outcome_id: market.outcomes[0]!.outcome_id, side: 'BUY', price: '0.01', size: '10' }
    const trading = async () => {
      const { trading: now, trading_until: until } = await statusOf(person)
      return [now, until === null]
    }
    for (const [mode, shown, isOpenEnded] of [
      ['restarting', 'restarting', true],
      ['postOnly', 'post_only', false],
    ] as const) {
      await venue('POST', '/mode', { mode, forMs: 8_000 })
      const placed = executed(person, '/predmkt/order', order)
      await eventually(async () => ((await trading())[0] === shown ? true : undefined), `trading is ${shown}`)
      assert.deepEqual(await trading(), [shown, isOpenEnded])
      await placed
      await eventually(async () => ((await trading())[0] === 'open' ? true : undefined), 'trading is open')
    }
    await executed(person, '/predmkt/order/cancel', { cancel_all: true })

    using folder = dataFolder()
    const operator = operatorOf({ DATABASE_URL: gateway.databaseUrl, DATA_DIR: folder.path })
    await operator.act('left', 'users', 'freeze', person.agentId)
    const isRevoked = async () => {
      const { rows } = await database.query<{ open: string }>(
        `select count(*) as open from prediction_key k join app_user u on u.id = k.user_id
         where u.agent_id = $1 and k.revoked_at is null`,
        [person.agentId],
      )
      return rows[0]?.open === '0' ? true : undefined
    }
    await eventually(isRevoked, 'the key is revoked')
    await operator.act('came back', 'users', 'unfreeze', person.agentId)
    const early = await person.call('POST /predmkt/order', { body: order })
    assert.deepEqual([early.status, early.body.code], [409, 'setup_incomplete'])
    await executed(person, '/predmkt/setup')
    await executed(person, '/predmkt/order', order)
    await executed(person, '/predmkt/order/cancel', { cancel_all: true })
  })

  const ramps = async (state: 'open' | 'paused') => {
    for (const asset of ['usdc', 'usdce']) await venue('POST', '/ramp', { ramp: 'offramp', asset, state })
  }

  test('a withdrawal waits while the venue unwraps nothing, and what stayed in the own wallet is used next', async () => {
    const person = await setUpPerson()
    await executed(person, '/predmkt/fund-safe', { amount_usd: '30' })
    const usdc = world.manifest.contracts[polygon]!.usdc
    const [usdcThere, cashThere] = [usdc, contracts.pusd].map(
      (token) => () => world.balance(polygon, person.evm, token),
    )
    const usdcBefore = await usdcThere!()
    await venue('POST', '/realism', { relayerLag: { rate: 1, minMs: 5_000, maxMs: 5_000 } })
    const body = { amount_usdc: '10' }
    const { body: task } = await person.call<Ended>('POST /predmkt/withdraw', { body })
    const shows = (text: RegExp, what: string) =>
      eventually(async () => {
        const now = JSON.stringify((await person.call(`GET /v1/tasks/${task.task_id}`)).body)
        return text.test(now) || undefined
      }, what)
    await shows(/"state":"confirming"/, 'the transfer is at the relayer')
    await ramps('paused')
    await shows(/venue_ramp_paused/, 'the withdrawal waits')
    assert.equal(await cashThere!(), micros('10'))
    await venue('POST', '/realism', { preset: 'quiet' })
    const refused = await person.call('POST /predmkt/withdraw', { body })
    assert.match(JSON.stringify(refused.body), /venue_ramp_paused/)
    assert.ok(refused.status >= 400)
    const asItIs = { amount_usdc: '5', token: 'pusd' }
    await executed(person, '/predmkt/withdraw', asItIs)
    // The 10 in the own wallet are those of the withdrawal that waits; 15 lie at the venue, and 5 beside the 10.
    const waitsLonger = `update task_queue set run_at = now() + interval '1 hour' where task_id = $1`
    await database.query(waitsLonger, [task.task_id])
    await ramps('open')
    const taking = await person.call('POST /predmkt/withdraw', { body: { amount_usdc: '20.000001' } })
    assert.equal(taking.body.code, 'insufficient_balance', JSON.stringify(taking.body))
    await database.query('update task_queue set run_at = now() where task_id = $1', [task.task_id])
    const ended = await person.ended(task.task_id)
    assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
    assert.equal((await usdcThere!()) - usdcBefore, micros('10'))
    assert.deepEqual([await cashThere!(), await cashOf(person)], [micros('5'), micros('15')])

    // The venue lacks 3 of these, which lie in the own wallet; then everything lies there.
    await executed(person, '/predmkt/withdraw', { amount_usdc: '18' })
    assert.deepEqual([await cashThere!(), await cashOf(person)], [micros('2'), 0n])
    const early = await person.call('POST /predmkt/withdraw', { body: { amount_usdc: '2.000001' } })
    assert.equal(early.body.code, 'insufficient_balance', JSON.stringify(early.body))
    await executed(person, '/predmkt/withdraw', { amount_usdc: '2' })
    assert.deepEqual([await cashThere!(), (await usdcThere!()) - usdcBefore], [0n, micros('30')])
  })

  test('a withdrawal whose transfer the relayer has lost ends by what the chain shows, and frees the wallet', async () => {
    const person = await setUpPerson()
    await executed(person, '/predmkt/fund-safe', { amount_usd: '30' })
    const body = { amount_usdc: '10', token: 'pusd' }
    // Another transfer of the same amount is not taken for it.
    const first = await executed(person, '/predmkt/withdraw', body)
    const arrived = () => world.balance(polygon, person.evm, contracts.pusd)
    await venue('POST', '/realism', { relayerLag: { rate: 1, minMs: 3_000, maxMs: 3_000 } })
    const { task_id: taskId } = await accept(person, '/predmkt/withdraw', body)
    const hasRun = async () => (await arrived()) === micros('20')
    await forgetRelayed({ venue: predictionVenue(gateway.world), database, taskId, hasRun })
    const ended = (await person.ended(taskId)) as unknown as Ended
    assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
    assert.ok(ended.result.tx_hash && ended.result.tx_hash !== first.result.tx_hash, JSON.stringify(ended))
    await venue('POST', '/realism', { preset: 'quiet' })
    assert.equal(await cashOf(person), micros('10'))
    await executed(person, '/predmkt/withdraw', body)
    assert.equal(await arrived(), micros('30'))
  })

  test('a full withdrawal of dust counts against the budget for gas, and another one does not', async () => {
    const [rich, poor] = await Promise.all([setUpPerson(), setUpPerson()])
    for (const [person, amount] of [
      [rich, '2'],
      [poor, '0.000001'],
    ] as const) {
      await venue('POST', '/credit', {
        wallet: (await statusOf(person)).safe_address,
        token: 'pusd',
        amount,
      })
      await database.query(
        `insert into sponsor_day (user_id, chain_id, day, wei)
           select user_id, '137', (now() at time zone 'utc')::date, 1e21 from wallet
             where lower(address) = lower($1)
           on conflict (user_id, chain_id, day) do update set wei = sponsor_day.wei + 1e21`,
        [person.evm],
      )
    }
    // What lies in the own wallet already is not left behind by a full withdrawal.
    await venue('POST', '/credit', { wallet: rich.evm, token: 'pusd', amount: '1' })
    for (const [amount, status, code] of [
      ['2', 429, 'rate_limited'],
      ['0.5', 422, 'validation'],
    ] as const) {
      const part = await rich.call('POST /predmkt/withdraw', { body: { amount_usdc: amount } })
      assert.deepEqual([part.status, part.body.code], [status, code], JSON.stringify(part.body))
    }
    await executed(rich, '/predmkt/withdraw', { amount_usdc: '3' })
    const refused = await poor.call('POST /predmkt/withdraw', { body: { amount_usdc: '0.000001' } })
    assert.deepEqual([refused.status, refused.body.code], [429, 'rate_limited'], JSON.stringify(refused.body))
  })

  test('dust and shares that do not move stay in an earlier wallet, and do not keep the others there', async () => {
    const [person, donor] = await Promise.all([createFundedPerson(gateway.url), setUpPerson()])
    await executed(donor, '/predmkt/fund-safe', { amount_usd: '20' })
    const slugs = ['bitcoin-up-or-down-today', 'beta-is-the-largest-company', 'gamma-is-the-largest-company']
    const markets = await Promise.all(slugs.map((slug) => marketBy(donor, slug)))
    const control = predictionVenue(gateway.world)
    const { safe } = await control<{ safe: string }>('POST', '/safe', { owner: person.evm })
    const { safe_address: from } = await statusOf(donor)
    for (const [index, market] of markets.entries()) {
      const outcomeId = market.outcomes[0]!.outcome_id
      const order = { outcome_id: outcomeId, side: 'BUY', order_type: 'FOK', amount_usd: '4' }
      const { result } = await executed(donor, '/predmkt/order', order)
      const units = index === 0 ? 9_999n : micros(result.settled_shares!) / 2n
      await moveOutcomeShares(world, { from, to: safe, market, outcomeId, units })
    }
    await venue('POST', '/ramp', { ramp: 'onramp', asset: 'usdce', state: 'paused' })
    for (const token of ['usdc', 'usdce'])
      await venue('POST', '/credit', { wallet: safe, token, amount: '3' })
    await person.call('POST /predmkt/disclaimer/acknowledge', { body: {} })
    const { result } = await executed(person, '/predmkt/setup/v2')
    await venue('POST', '/ramp', { ramp: 'onramp', asset: 'usdce', state: 'open' })
    assert.match(JSON.stringify(result.left_in_safe), /USDC\.e, which does not move now.*1 outcomes/)
    assert.equal(await cashOf(person), micros('3'))
    const ids = markets.map(({ outcomes }) => outcomes[0]!.outcome_id)
    const left = await control<{ usdc: string; usdce: string; shares: Record<string, string> }>(
      'GET',
      `/balances?wallet=${safe}&tokens=${ids.join()}`,
    )
    assert.deepEqual([left.usdc, left.usdce, ...ids.map((id) => left.shares[id]!)].map(micros), [
      0n,
      micros('3'),
      9_999n,
      0n,
      0n,
    ])
  })

  test('what a withdrawal takes from the own wallet is reserved while its transfer is on its way', async () => {
    const person = await setUpPerson()
    await executed(person, '/predmkt/fund-safe', { amount_usd: '10' })
    await venue('POST', '/credit', { wallet: person.evm, token: 'pusd', amount: '5' })
    await venue('POST', '/realism', { relayerLag: { rate: 1, minMs: 5_000, maxMs: 5_000 } })
    const task = await accept(person, '/predmkt/withdraw', { amount_usdc: '12' })
    const state = async () => (await person.task(task.task_id)).state
    await eventually(async () => (await state()) === 'confirming' || undefined, 'the transfer is on its way')
    const taking = await person.call('POST /predmkt/withdraw', { body: { amount_usdc: '3.000001' } })
    assert.equal(taking.body.code, 'insufficient_balance', JSON.stringify(taking.body))
    const ended = await person.ended(task.task_id)
    await venue('POST', '/realism', { preset: 'quiet' })
    assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
    assert.equal(await world.balance(polygon, person.evm, contracts.pusd), micros('3'))
    await executed(person, '/predmkt/withdraw', { amount_usdc: '3' })
  })

  test('dollars in the wallet at the venue are wrapped by one task', async () => {
    const person = await setUpPerson()
    const { safe_address: wallet } = await statusOf(person)
    await venue('POST', '/credit', { wallet, token: 'usdc', amount: '10' })
    await venue('POST', '/realism', { relayerLag: { rate: 1, minMs: 5_000, maxMs: 5_000 } })
    const body = {
      wrap_only: true,
      amount_usd: '10',
      source_wallet: 'deposit_wallet',
      source_token_address: contracts.usdc,
    }
    const task = await accept(person, '/predmkt/fund-safe', body)
    const again = await person.call('POST /predmkt/fund-safe', { body })
    assert.match(JSON.stringify(again.body), /only 0 USDC is available/)
    assert.equal((await person.ended(task.task_id)).outcome, 'executed')
    await venue('POST', '/realism', { preset: 'quiet' })
    assert.equal(await cashOf(person), micros('10'))
    await venue('POST', '/credit', { wallet, token: 'usdc', amount: '10' })
    await executed(person, '/predmkt/fund-safe', body)
    assert.equal(await cashOf(person), micros('20'))
  })

  test('a set-up whose sign-in the venue refuses ends with its words, and another one goes on', async () => {
    const person = await createFundedPerson(gateway.url)
    await person.call('POST /predmkt/disclaimer/acknowledge', { body: {} })
    const control = predictionVenue(gateway.world)
    for (const type of ['/auth/api-key', '/auth/derive-api-key'])
      await control('POST', '/faults', { effect: 'status', status: 403, endpoint: 'clob', type })
    const refused = await run(person, '/predmkt/setup')
    await control('DELETE', '/faults')
    assert.deepEqual([refused.status, refused.outcome], ['failed', 'not_executed'], JSON.stringify(refused))
    assert.ok(refused.error!.message.length > 0, JSON.stringify(refused))
    await executed(person, '/predmkt/setup')
  })
})
