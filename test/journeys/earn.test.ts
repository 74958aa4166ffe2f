import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { fromUnits } from '#kernel/money/money.ts'
import { decimalUnits } from '../harness/conservation.ts'
import { eventually, freshGateway, http } from '../harness/gateway.ts'
import { createFundedPerson, type Person, type Positions, type TaskBody } from './users.ts'
import { type World, worldOf } from './world.ts'

type Info = Record<'share_price' | 'min_deposit_usdc' | 'total_assets_usdc', string> & { apy: number | null }
type Refusal = Record<string, unknown> & { code: string; reason?: string }

const microsOf = (text: string): bigint => decimalUnits(text, 6)

describe('a user earns on USDC', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway({}, { ownWorld: 'half a year passes, and a chain stops' })
    world = await worldOf(gateway.world)
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const positionsOf = async (person: Person) => (await person.call<Positions>('GET /v1/earn/positions')).body
  const info = async () => (await http<Info>(`${gateway.url}/v1/earn`)).body

  /**
   * Each completed task is one event of the vault, under its own hash and with its own amounts, and there are no
   * others.
   */
  async function agreesWithChain(person: Person): Promise<void> {
    const { items } = (await person.call<{ items: TaskBody[] }>('GET /v1/tasks?status=completed&limit=100'))
      .body
    const entries = items
      .filter(({ kind }) => kind.startsWith('earn_'))
      .map(({ kind, result }) => [
        kind === 'earn_deposit' ? 'Deposit' : 'Withdraw',
        String(microsOf(result.amount_usdc_decimal)),
        result.shares_delta.replace('-', ''),
        result.tx_hash,
      ])
    const happened = (await world.effects(person.evm)).map(
      ({ event, assets_units, shares_units, tx_hash }) => [event, assets_units, shares_units, tx_hash],
    )
    assert.deepEqual(entries.sort(), happened.sort())
  }

  test('a first deposit of 250.5 USDC needs no gas, and all its amounts come from the events of the vault', async () => {
    const person = await createFundedPerson(gateway.url)
    assert.equal(await world.nativeOf(person.evm), 0n)
    const done = await person.call<TaskBody>('POST /v1/earn/enable?wait=true', {
      body: { amount_usdc: 250.5 },
    })
    assert.equal(done.status, 200)
    const { status, outcome, message, kind, result, transactions, balance_changes } = done.body
    assert.deepEqual([status, outcome, message, kind], ['completed', 'executed', 'Completed', 'earn_deposit'])
    assert.equal(result.amount_usdc_decimal, '250.5')
    assert.equal(await world.nativeOf(person.evm), 0n)
    assert.equal(await world.usdcOf(person.evm), 9_749_500_000n)
    assert.equal(await world.sharesOf(person.evm), BigInt(result.shares_delta))
    assert.deepEqual(
      balance_changes.map(({ symbol, amount }) => [symbol, amount]),
      [
        ['USDC', '-250500000'],
        ['evUSDC', result.shares_delta],
      ],
    )
    assert.deepEqual(
      transactions.map(({ tx_hash, status: txStatus }) => [tx_hash, txStatus]),
      [[result.tx_hash, 'finalized']],
    )
    await agreesWithChain(person)
    const polled = await person.call<TaskBody>(`GET ${new URL(done.body.poll_url).pathname}`)
    assert.deepEqual(polled.body, done.body)
  })

  test('a position shows deposits and yield, and is withdrawn in part to the unit and then in full, to the last share', async () => {
    const person = await createFundedPerson(gateway.url)
    const first = (await person.deposit('250.5')).body
    const { position_id } = first.result
    const opened = await positionsOf(person)
    assert.equal(opened.positions.length, 1)
    const { id, status, amount_deposited_usdc, external_delta_shares, current_apy } = opened.positions[0]!
    assert.deepEqual(
      [id, status, amount_deposited_usdc, external_delta_shares, current_apy],
      [position_id, 'active', '250.5', '0', null],
    )
    const more = await person.call<TaskBody>('POST /v1/earn/deposit?wait=true', {
      body: { amount_usdc: '100', position_id },
    })
    assert.equal(more.body.result.position_id, position_id)
    assert.equal((await positionsOf(person)).positions[0]!.amount_deposited_usdc, '350.5')

    const before = await world.usdcOf(person.evm)
    const part = (await person.withdraw({ position_id, amount_usdc: '40.25' })).body
    assert.equal(part.outcome, 'executed', JSON.stringify(part))
    assert.equal((await world.usdcOf(person.evm)) - before, 40_250_000n)
    assert.equal(part.result.amount_usdc_decimal, '40.25')
    const rest = (await person.withdraw({ position_id, amount_usdc: null })).body
    assert.equal(rest.outcome, 'executed', JSON.stringify(rest))
    assert.equal(await world.sharesOf(person.evm), 0n)
    assert.equal(await world.nativeOf(person.evm), 0n)

    const closed = await positionsOf(person)
    assert.deepEqual([closed.positions[0]!.status, closed.positions[0]!.shares], ['withdrawn', '0'])
    assert.deepEqual(
      closed.history.map(({ action, status: txStatus, tx_hash }) => [action, txStatus, typeof tx_hash]),
      [
        ['withdraw', 'completed', 'string'],
        ['withdraw', 'completed', 'string'],
        ['deposit', 'completed', 'string'],
        ['deposit', 'completed', 'string'],
      ],
    )
    await agreesWithChain(person)
    const empty = await person.call<Refusal>('POST /v1/earn/withdraw', { body: { position_id } })
    assert.deepEqual([empty.status, empty.body.code], [409, 'no_position'])
  })

  test('a request that cannot succeed is rejected with its reason, and creates no task', async () => {
    const [person, other] = await Promise.all([
      createFundedPerson(gateway.url),
      createFundedPerson(gateway.url),
    ])
    const { position_id } = (await other.deposit('10')).body.result
    const tasksBefore = await person.taskCount()
    const refused = async (body: object, route = 'POST /v1/earn/deposit?wait=true') => {
      const headers = { 'x-request-id': 'the-same-request' }
      const { status, body: refusalBody } = await person.call<Refusal>(route, { body, headers })
      return { status, body: refusalBody }
    }
    const published = (await http<{ earn: Info }>(`${gateway.url}/capabilities`)).body.earn.min_deposit_usdc
    assert.deepEqual(await refused({ amount_usdc: '0.999999' }), {
      status: 422,
      body: {
        detail: [
          {
            loc: ['body', 'amount_usdc'],
            msg: `Input should be at least ${published} USDC, which is the minimum`,
            type: 'below_minimum',
            ctx: { minimum: published, unit: 'USDC' },
          },
        ],
        code: 'validation',
        retryable: false,
        request_id: 'the-same-request',
      },
    })
    const misspelt = await refused({ amount_usdc: '5', positionId: position_id })
    assert.equal(misspelt.status, 422)
    const poor = await refused({ amount_usdc: '10000.000001' })
    assert.equal(poor.status, 409)
    const { code, token, required, available } = poor.body
    assert.deepEqual(
      [code, token, required, available],
      ['insufficient_balance', world.usdc, '10000.000001', '10000'],
    )
    const capped = await refused({ amount_usdc: '25000.01' })
    assert.deepEqual([capped.status, capped.body.code], [403, 'policy_denied'])

    const withdraw = 'POST /v1/earn/withdraw?wait=true'
    const foreign = await refused({ position_id }, withdraw)
    assert.equal(foreign.status, 404)
    assert.deepEqual(foreign, await refused({ position_id: randomUUID() }, withdraw))
    assert.deepEqual(foreign, await refused({ amount_usdc: '5', position_id }))
    const tooMuch = await other.withdraw({ position_id, amount_usdc: '10.5' })
    assert.equal(tooMuch.status, 409)
    assert.equal(await person.taskCount(), tasksBefore)
    assert.deepEqual(await positionsOf(person), {
      positions: [],
      history: [],
      next_after: null,
      next_history_after: null,
    })
    assert.equal(await world.usdcOf(person.evm), 10_000_000_000n)
  })

  test('a vault without liquidity rejects a withdrawal with 409, and pays once it has it', async () => {
    const person = await createFundedPerson(gateway.url)
    const { position_id } = (await person.deposit('100')).body.result
    const tasksBefore = await person.taskCount()
    await world.setVault({ illiquid: true })
    try {
      const { status, body } = await person.call<Refusal>('POST /v1/earn/withdraw?wait=true', {
        body: { position_id },
      })
      assert.deepEqual([status, body.code, body.retryable], [409, 'insufficient_liquidity', true])
      assert.match(String(body.reason), /liquidity/i)
      assert.equal(await person.taskCount(), tasksBefore)
    } finally {
      await world.setVault({ illiquid: false })
    }
    const out = (await person.withdraw({ position_id })).body
    assert.equal(out.outcome, 'executed', JSON.stringify(out))
    await agreesWithChain(person)
  })

  test('shares moved outside are reported as such and never as a loss', async () => {
    const person = await createFundedPerson(gateway.url)
    const { position_id, shares_delta } = (await person.deposit('100')).body.result
    const half = BigInt(shares_delta) / 2n
    await world.moveShares(person.evm, `0x${'11'.repeat(20)}`, half)
    const { positions } = await positionsOf(person)
    const [position] = positions
    assert.equal(position!.status, 'active')
    assert.equal(position!.external_delta_shares, String(-half))
    assert.ok(Number(position!.unrealized_yield_usdc) > -0.00001, position!.unrealized_yield_usdc)
    const out = (await person.withdraw({ position_id })).body
    assert.equal(out.outcome, 'executed', JSON.stringify(out))
    assert.equal(await world.sharesOf(person.evm), 0n)
    const rest = BigInt(shares_delta) - half
    assert.equal(out.result.shares_delta, String(-rest))
    // Burnt shares are booked; shares that left another way stay in view until their owner books them.
    const [left] = (await positionsOf(person)).positions
    assert.deepEqual(
      [left!.status, left!.shares, left!.external_delta_shares],
      ['active', String(half), String(-half)],
    )
    const again = await person.call<Refusal>('POST /v1/earn/withdraw', { body: { position_id } })
    assert.deepEqual([again.status, again.body.reason], [409, 'external_loss'])
    const lost = fromUnits(half, 18)
    assert.equal(
      again.body.detail,
      `The withdrawal needs ${lost} evUSDC, but only 0 evUSDC is available: the shares of this position were moved out of the account outside this gateway. \`earn_sync\` takes them off the position`,
    )
    assert.deepEqual([again.body.required, again.body.decimals, again.body.symbol], [lost, 18, 'evUSDC'])
    const synced = (await person.call<TaskBody>('POST /v1/earn/sync?wait=true')).body
    assert.equal(synced.outcome, 'executed', JSON.stringify(synced))
    const later = await positionsOf(person)
    assert.deepEqual([later.positions[0]!.status, later.positions[0]!.shares], ['withdrawn', '0'])
    for (const row of later.history)
      assert.ok(row.status !== 'completed' || typeof row.tx_hash === 'string', JSON.stringify(row))
  })

  test('ten concurrent deposits all land, and parallel ones never spend one balance twice', async () => {
    const person = await createFundedPerson(gateway.url)
    const all = await Promise.all(Array.from({ length: 10 }, () => person.deposit('1200')))
    const landed = all.filter(({ status }) => status === 200)
    for (const { status, body } of all)
      if (status === 200) assert.equal(body.outcome, 'executed', JSON.stringify(body))
      else assert.deepEqual([status, (body as unknown as Refusal).code], [409, 'insufficient_balance'])
    assert.equal(landed.length, 8)
    assert.equal(await world.usdcOf(person.evm), 400_000_000n)
    assert.equal((await positionsOf(person)).positions.length, 8)
    await agreesWithChain(person)
  })

  test('while the chain is unreachable positions are still listed, unknown figures are null, and nothing is accepted', async () => {
    const person = await createFundedPerson(gateway.url)
    const { position_id, shares_delta } = (await person.deposit('100')).body.result
    await world.chain('8453', 'stop')
    try {
      const [position] = (await positionsOf(person)).positions
      assert.deepEqual(
        [position?.id, position?.status, position?.shares, position?.external_delta_shares],
        [position_id, 'active', shares_delta, null],
      )
      const tasksBefore = await person.taskCount()
      for (const [route, body] of [
        ['withdraw', { position_id }],
        ['deposit', { amount_usdc: '5' }],
      ] as const) {
        const refused = await person.call<Refusal>(`POST /v1/earn/${route}?wait=true`, { body })
        const { code, outcome } = refused.body
        assert.deepEqual([refused.status, code, outcome], [503, 'unavailable', 'not_executed'], route)
      }
      assert.equal(await person.taskCount(), tasksBefore)
    } finally {
      await world.chain('8453', 'start')
    }
    const paid = async () => {
      const { status, body } = await person.withdraw({ position_id })
      return status === 200 ? body : undefined
    }
    const out = await eventually(paid, 'the chain is back')
    assert.equal(out.outcome, 'executed', JSON.stringify(out))
    await agreesWithChain(person)
  })

  test("the vault's figures are public and equal those of the chain", async () => {
    const person = await createFundedPerson(gateway.url)
    const raw = (await person.call<Record<string, unknown>>('GET /v1/earn/vault')).body
    assert.equal(String(raw.vault_address).toLowerCase(), world.vault.toLowerCase())
    assert.deepEqual(
      [raw.chain_id, raw.share_decimals, raw.asset],
      ['8453', 18, { address: world.usdc, symbol: 'USDC', decimals: 6 }],
    )
    assert.ok(BigInt(String(raw.total_supply)) > 10n ** 24n)
    assert.equal(BigInt(String(raw.convert_to_assets_one)) / 1_000n, 1_000n)
    const { apy, share_price } = await info()
    assert.equal(apy, null)
    assert.ok(Number(share_price) >= 1)
  })

  test('half a year later the same shares are worth more, and the yield belongs to their owner', async () => {
    const person = await createFundedPerson(gateway.url)
    const { position_id, shares_delta } = (await person.deposit('1000')).body.result
    await world.setVault({ drip_bps_per_year: 1_000 })
    await world.advance(182 * 86_400)
    await world.rpc('evm_mine')
    const position = await eventually(
      async () => {
        const [found] = (await positionsOf(person)).positions
        return Number(found!.unrealized_yield_usdc) > 40 ? found : undefined
      },
      'the yield shows in the position',
      30_000,
    )
    assert.equal(position!.shares, shares_delta)
    assert.equal(position!.amount_deposited_usdc, '1000')
    assert.ok(Number(position!.unrealized_yield_usdc) < 60, position!.unrealized_yield_usdc)
    assert.ok(Number((await info()).share_price) > 1.04)
    // One share price a day is not enough for a rate, and an unknown rate is not zero.
    assert.equal(position!.current_apy, null)

    const out = (await person.withdraw({ position_id })).body
    assert.equal(out.outcome, 'executed', JSON.stringify(out))
    const gained = (await world.usdcOf(person.evm)) - 10_000_000_000n
    assert.ok(gained > 40_000_000n && gained < 60_000_000n, String(gained))
    await agreesWithChain(person)
    const again = (await person.deposit('5')).body
    assert.equal(again.outcome, 'executed', JSON.stringify(again))
  })
})
