import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { fromUnits } from '#kernel/money/money.ts'
import {
  type Answer,
  baseId,
  type ChainsApp,
  createChainsApp,
  type User,
  vaultAddress,
} from './chains-app.ts'

const faultOf = (promise: Promise<unknown>): Promise<Fault> =>
  promise.then(
    (value) => assert.fail(`no fault but ${JSON.stringify(value)}`),
    (thrown: unknown) => {
      assert.ok(thrown instanceof Fault, String(thrown))
      return thrown
    },
  )

describe('earn on the local chain', () => {
  let app: ChainsApp
  before(async () => {
    app = await createChainsApp()
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
  })

  const positionsOf = (user: User): Promise<Answer> => app.call('earn_positions', {}, user)
  const shares = async (user: User) => (await app.main.vault.account(user.evm)).sharesUnits
  const cash = async (user: User) => (await app.main.vault.account(user.evm)).cashUnits
  const deposit = (user: User, amount_usdc: string, more: object = {}) =>
    app.call('earn_deposit', { amount_usdc, ...more }, user)

  test('a user with the maximum number of positions opens no further one, neither a new nor a withdrawn one', async () => {
    const user = await app.fundedUser()
    const { position_id: withdrawn } = (await deposit(user, '10')).result
    await app.call('earn_withdraw', { position_id: withdrawn }, user)
    const { position_id } = (await deposit(user, '10')).result
    const query = (text: string) => app.database.pool.query(text, [user.id])
    await query(
      `insert into account (shard, owner, asset, sub_account, avail)
       select 0, $1, '${baseId}:${vaultAddress.toLowerCase()}', 'position:' || gen_random_uuid(), 1 from generate_series(1, 999)`,
    )
    for (const more of [{}, { position_id: withdrawn }]) {
      const fault = await faultOf(deposit(user, '10', more))
      assert.deepEqual([fault.code, fault.extras.reason], ['conflict', '1000 positions have shares'])
    }
    assert.equal((await deposit(user, '10', { position_id })).outcome, 'executed')
    await query(`update account set avail = 0 where owner = $1 and avail = 1`)
    assert.equal((await deposit(user, '10')).outcome, 'executed')
  })

  test('a user without any gas deposits, sees the position, and withdraws everything', async () => {
    const user = await app.fundedUser()
    const done = await app.call('earn_enable', { amount_usdc: '1000' }, user)
    assert.equal(done.status, 'completed', JSON.stringify(done))
    assert.equal(done.outcome, 'executed')
    assert.equal(done.kind, 'earn_deposit')
    assert.equal(done.result.amount_usdc, 1000)
    assert.equal(done.result.amount_usdc_decimal, '1000')
    assert.equal(BigInt(done.result.shares_delta), await shares(user))
    assert.equal(await cash(user), 9_000_000_000n)
    assert.equal(done.transactions.length, 1)
    assert.equal(done.transactions[0]!.status, 'finalized')
    assert.equal(done.transactions[0]!.tx_hash, done.result.tx_hash)
    assert.deepEqual(
      done.balance_changes.map(({ symbol, amount }) => [symbol, amount]),
      [
        ['USDC', '-1000000000'],
        ['evUSDC', done.result.shares_delta],
      ],
    )

    const { positions, history } = await positionsOf(user)
    assert.equal(positions.length, 1)
    assert.equal(positions[0]!.id, done.result.position_id)
    assert.equal(positions[0]!.status, 'active')
    assert.equal(positions[0]!.amount_deposited_usdc, '1000')
    assert.equal(positions[0]!.external_delta_shares, '0')
    assert.equal(history[0]!.status, 'completed')
    assert.equal(history[0]!.tx_hash, done.result.tx_hash)
    assert.equal(history[0]!.amount_usdc, 1000)

    const out = await app.call('earn_withdraw', { position_id: positions[0]!.id, amount_usdc: null }, user)
    assert.equal(out.status, 'completed', JSON.stringify(out))
    assert.equal(await shares(user), 0n)
    assert.ok((await cash(user)) >= 9_999_999_999n)
    const later = await positionsOf(user)
    assert.equal(later.positions[0]!.status, 'withdrawn')
    assert.equal(later.positions[0]!.shares, '0')
    assert.equal(later.history.length, 2)
    assert.equal(await app.flows(user), 2)
  })

  test('a second deposit uses the delegated account, for the same or a new position', async () => {
    const user = await app.fundedUser()
    const first = await deposit(user, '10')
    const same = await deposit(user, '5.5', { position_id: first.result.position_id })
    const fresh = await deposit(user, '7')
    assert.equal(same.result.position_id, first.result.position_id)
    assert.notEqual(fresh.result.position_id, first.result.position_id)
    const { positions } = await positionsOf(user)
    assert.deepEqual(
      positions.map(({ amount_deposited_usdc }) => amount_deposited_usdc),
      ['7', '15.5'],
    )
    const sum = positions.reduce((total: bigint, each) => total + BigInt(each.shares), 0n)
    assert.equal(sum, await shares(user))
  })

  test('a partial withdrawal is exact to the requested unit', async () => {
    const user = await app.fundedUser()
    const { result } = await deposit(user, '100')
    const before = await cash(user)
    const out = await app.call(
      'earn_withdraw',
      { position_id: result.position_id, amount_usdc: '40.25' },
      user,
    )
    assert.equal(out.status, 'completed', JSON.stringify(out))
    assert.equal((await cash(user)) - before, 40_250_000n)
    assert.equal(out.result.amount_usdc_decimal, '40.25')
    const { positions } = await positionsOf(user)
    assert.equal(BigInt(positions[0]!.shares), await shares(user))
    assert.equal(positions[0]!.external_delta_shares, '0')
  })

  test('eight parallel deposits of one new user all land', async () => {
    const user = await app.fundedUser()
    const all = await Promise.all(Array.from({ length: 8 }, () => deposit(user, '100')))
    for (const each of all) assert.equal(each.outcome, 'executed', JSON.stringify(each.error))
    assert.equal(await cash(user), 9_200_000_000n)
    assert.equal(await app.flows(user), 8)
    const { positions } = await positionsOf(user)
    assert.equal(positions.length, 8)
  })

  test('parallel deposits never spend one balance twice', async () => {
    const user = await app.fundedUser('250')
    const all = await Promise.allSettled(Array.from({ length: 6 }, () => deposit(user, '100')))
    const landed = all.filter((each) => each.status === 'fulfilled')
    for (const each of all)
      if (each.status === 'rejected') assert.equal((each.reason as Fault).code, 'insufficient_balance')
    assert.equal(landed.length, 2)
    assert.equal(await cash(user), 50_000_000n)
  })

  test('one key sent three times is one deposit', async () => {
    const user = await app.fundedUser()
    const again = () => app.call('earn_deposit', { amount_usdc: '25' }, user, { key: 'the same' })
    const ids = (await Promise.all([again(), again(), again()])).map(({ task_id }) => task_id)
    assert.equal(new Set([...ids, (await again()).task_id]).size, 1)
    assert.equal(await app.flows(user), 1)
  })

  test('a request that cannot succeed is rejected before a task exists', async () => {
    const user = await app.fundedUser('50')
    const other = await app.fundedUser('50')
    const { result } = await deposit(other, '10')
    const small = await faultOf(deposit(user, '0.999999'))
    assert.equal(small.issues[0]?.type, 'below_minimum')
    assert.deepEqual(small.issues[0]?.ctx, { minimum: '1', unit: 'USDC' })
    const poor = await faultOf(deposit(user, '51'))
    assert.equal(poor.code, 'insufficient_balance')
    const token = { chain_id: '8453', symbol: 'USDC', token: app.main.usdc, decimals: 6 }
    assert.deepEqual(poor.extras, { ...token, required: '51', available: '50' })
    assert.equal(poor.message, 'The deposit needs 51 USDC, but only 50 USDC is available')
    assert.equal((await faultOf(deposit(user, '10', { position_id: result.position_id }))).code, 'not_found')
    const foreign = app.call('earn_withdraw', { position_id: result.position_id }, user)
    assert.equal((await faultOf(foreign)).code, 'not_found')
    const absent = uuidv7(new Date(), systemRandom)
    assert.equal((await faultOf(app.call('earn_withdraw', { position_id: absent }, user))).code, 'not_found')
    assert.equal((await faultOf(app.call('earn_withdraw', { position_id: 'x' }, user))).code, 'not_found')
    const much = app.call('earn_withdraw', { position_id: result.position_id, amount_usdc: '10.5' }, other)
    const beyond = await faultOf(much)
    assert.equal(beyond.code, 'insufficient_balance')
    assert.match(beyond.message, /^The withdrawal needs 10\.5 USDC, but only [0-9.]+ USDC is available$/)
    assert.deepEqual(
      [beyond.extras.symbol, beyond.extras.decimals, beyond.extras.required],
      ['USDC', 6, '10.5'],
    )
    const { history } = await positionsOf(user)
    assert.deepEqual(history, [])
  })

  test('a vault without liquidity rejects the withdrawal with its reason, and the shares stay free', async () => {
    const user = await app.fundedUser()
    const { result } = await deposit(user, '100')
    await app.control('POST', '/vault', { illiquid: true })
    try {
      const fault = await faultOf(app.call('earn_withdraw', { position_id: result.position_id }, user))
      assert.equal(fault.code, 'insufficient_liquidity')
      assert.match(String(fault.extras.reason), /liquidity/)
    } finally {
      await app.control('POST', '/vault', { illiquid: false })
    }
    const out = await app.call('earn_withdraw', { position_id: result.position_id }, user)
    assert.equal(out.outcome, 'executed', JSON.stringify(out))
  })

  test('a vault that loses its liquidity between admission and execution ends the task as not executed', async () => {
    const user = await app.fundedUser()
    const { result } = await deposit(user, '100')
    await app.rpc('evm_setAutomine', [false])
    try {
      const pendingDeposit = app.call('earn_withdraw', { position_id: result.position_id }, user, {
        timeoutMs: 30_000,
      })
      await until(async () => (await pendingOn(app)) > 0)
      const twice = await faultOf(app.call('earn_withdraw', { position_id: result.position_id }, user))
      const shares = fromUnits(BigInt(result.shares_delta), 18)
      assert.equal(
        twice.message,
        `The withdrawal needs ${shares} evUSDC, but only 0 evUSDC is available: all shares of this position are held for other withdrawals`,
      )
      assert.deepEqual(twice.extras, {
        symbol: 'evUSDC',
        token: vaultAddress,
        decimals: 18,
        required: shares,
        available: '0',
        reason: 'set_aside',
      })
      // The test's transaction pays more, so it is mined first.
      await app.rpc('anvil_setStorageAt', await illiquidSlot(app))
      await app.rpc('evm_mine')
      const out = await pendingDeposit
      assert.equal(out.status, 'failed', JSON.stringify(out))
      assert.equal(out.outcome, 'not_executed')
      assert.match(out.error.message, /liquidity/)
      assert.equal(out.transactions[0]!.status, 'failed')
    } finally {
      await app.rpc('evm_setAutomine', [true])
      await app.control('POST', '/vault', { illiquid: false })
    }
    const { positions, history } = await positionsOf(user)
    assert.equal(BigInt(positions[0]!.shares), await shares(user))
    assert.equal(history[0]!.status, 'failed')
    const out = await app.call('earn_withdraw', { position_id: result.position_id }, user)
    assert.equal(out.outcome, 'executed')
  })

  test('shares moved outside are reported as such and never as a loss', async () => {
    const user = await app.fundedUser()
    const { result } = await deposit(user, '100')
    const half = (await shares(user)) / 2n
    await app.rpc('anvil_setBalance', [user.evm, '0xde0b6b3a7640000'])
    await app.rpc('anvil_impersonateAccount', [user.evm])
    const data = `0xa9059cbb${'11'.repeat(20).padStart(64, '0')}${half.toString(16).padStart(64, '0')}`
    await app.rpc('eth_sendTransaction', [{ from: user.evm, to: vaultAddress, data }])
    const { positions } = await positionsOf(user)
    assert.equal(positions[0]!.status, 'active')
    assert.equal(positions[0]!.external_delta_shares, String(-half))
    assert.ok(Number(positions[0]!.unrealized_yield_usdc) >= -0.000002, positions[0]!.unrealized_yield_usdc)
    const out = await app.call('earn_withdraw', { position_id: result.position_id }, user)
    assert.equal(out.outcome, 'executed', JSON.stringify(out))
    assert.equal(await shares(user), 0n)
    const left = await positionsOf(user)
    assert.equal(left.positions[0]!.shares, String(half))
    assert.equal(left.positions[0]!.external_delta_shares, String(-half))
    const synced = await app.call('earn_sync', {}, user)
    assert.equal(synced.outcome, 'executed', JSON.stringify(synced))
    const later = await positionsOf(user)
    assert.equal(later.positions[0]!.shares, '0')
    assert.equal(later.positions[0]!.status, 'withdrawn')
  })

  test('the vault is public, and its own limits of zero stop no deposit', async () => {
    const info = await app.call('earn_info', {}, null)
    assert.equal(info.chain_id, '8453')
    assert.equal(info.apy, null)
    assert.ok(Number(info.share_price) > 0)
    assert.equal(info.min_deposit_usdc, '1')
    const user = await app.addUser()
    const raw = await app.call('earn_vault', {}, user)
    assert.equal(raw.share_decimals, 18)
    assert.equal(raw.asset.decimals, 6)
    assert.deepEqual((await positionsOf(user)).positions, [])
    assert.deepEqual((await positionsOf(user)).history, [])
  })

  test('the yield equals the rate of the vault within a basis point, after an hour', async () => {
    await app.control('POST', '/vault', { drip_bps_per_year: 500 })
    await app.main.earn.snapshot()
    await app.control('POST', '/time', { advance_seconds: 3_600 })
    await app.rpc('evm_mine')
    await app.main.earn.snapshot()
    const { apy, apy_7d: week } = await app.call('earn_info', {}, null)
    assert.ok(apy !== null && Math.abs(apy - 0.05) < 0.0001, `apy is ${apy}`)
    assert.equal(week, apy)
  })
})

const pendingOn = async (app: ChainsApp) =>
  Number(((await app.rpc('txpool_status')) as { pending: string }).pending)

async function until(holds: () => Promise<boolean>, msMax = 10_000): Promise<void> {
  const end = performance.now() + msMax
  while (!(await holds())) {
    assert.ok(performance.now() < end, 'the condition was not met in time')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Sets the vault's flag directly in storage; finds the slot by trying, so that no layout is hard-coded here. */
async function illiquidSlot(app: ChainsApp): Promise<[string, string, string]> {
  for (let slot = 0; slot < 24; slot++) {
    const at = `0x${slot.toString(16)}`
    const value = await app.rpc('eth_getStorageAt', [vaultAddress, at, 'latest'])
    if (value !== `0x${'0'.repeat(64)}`) continue
    const one = `0x${'0'.repeat(63)}1`
    await app.rpc('anvil_setStorageAt', [vaultAddress, at, one])
    const { illiquid } = await app.control('GET', '/vault')
    if (illiquid) return [vaultAddress, at, one]
    await app.rpc('anvil_setStorageAt', [vaultAddress, at, value])
  }
  return assert.fail('the flag of the vault was not found')
}
