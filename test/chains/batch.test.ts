import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { parseTransaction } from 'viem'
import { Fault } from '#kernel/fault.ts'
import { send } from '#store/query.ts'
import { eventually } from '../harness/gateway.ts'
import { type Stage, stage, type User } from './stage.ts'

const gwei = 1_000_000_000n
const sending = ['eth_sendRawTransaction']

describe('batches on a chain that misbehaves', () => {
  let on: Stage
  before(async () => {
    on = await stage({ row: (row) => ({ ...row, stuckAfterMs: 400, batchTtlSeconds: 300 }) })
  })
  after(async () => {
    await on[Symbol.asyncDispose]()
  })
  beforeEach(async () => {
    await on.control('DELETE', '/faults', {})
    await on.rpc('evm_setAutomine', [true])
    await on.rpc('anvil_setNextBlockBaseFeePerGas', [`0x${gwei.toString(16)}`])
    await on.rpc('evm_mine')
    await on.main.keeper.reconcile()
  })

  const fault = (what: object) => on.control('PUT', '/faults', { target: 'evm:8453', ...what })
  const deposit = (user: User, amount_usdc = '100', timeoutMs = 30_000) =>
    on.call('earn_deposit', { amount_usdc }, user, { timeoutMs })
  const cash = async (user: User) => (await on.main.vault.account(user.evm)).cashUnits
  const pooled = async () => Number(((await on.rpc('txpool_status')) as { pending: string }).pending)
  const taskOf = async (user: User) => {
    const { tasks } = await on.main.ground.tasks.list(user.id, { skip: 0, limit: 1 })
    return tasks[0]
  }
  const stateOf = async (user: User, state: string) =>
    eventually(
      async () => ((await taskOf(user))?.state === state ? true : undefined),
      `state ${state}`,
      15_000,
    )
  const freeOf = async (user: User) =>
    on.main.ground.ledger.balance(on.database.pool, {
      owner: user.id,
      asset: `8453:${on.main.usdc.toLowerCase()}`,
      book: 'wallet',
    })

  test('a reply that is lost after the sending neither loses nor doubles the deposit', async () => {
    const user = await on.richUser()
    await fault({ drop_reply: true, methods: sending, count: 2 })
    const done = await deposit(user)
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.equal(done.transactions.length, 1)
    assert.equal(await on.flows(user), 1)
  })

  test('a node that refuses to listen is asked again with the same bytes', async () => {
    const user = await on.richUser()
    await fault({ status: 503, methods: sending, count: 2 })
    const done = await deposit(user)
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.equal(done.transactions.length, 1)
    assert.equal(await on.flows(user), 1)
  })

  test('while the chain is silent the outcome is unknown, and afterwards it is the truth', async () => {
    const user = await on.richUser()
    await on.rpc('evm_setAutomine', [false])
    const going = deposit(user)
    await eventually(async () => ((await pooled()) > 0 ? true : undefined), 'a transaction in the pool')
    await fault({ status: 502 })
    await stateOf(user, 'reconciling')
    assert.equal((await taskOf(user))?.outcome, 'unknown')
    await on.control('DELETE', '/faults', {})
    await on.rpc('evm_setAutomine', [true])
    await on.rpc('evm_mine')
    const done = await going
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    assert.equal(await on.flows(user), 1)
  })

  test('an authorization that the chain skips ends as nothing executed, although the receipt is green', async () => {
    const user = await on.richUser()
    await on.rpc('evm_setAutomine', [false])
    const going = deposit(user)
    await eventually(async () => ((await pooled()) > 0 ? true : undefined), 'a transaction in the pool')
    await on.rpc('anvil_setNonce', [user.evm, '0x5'])
    await on.rpc('evm_mine')
    const done = await going
    assert.equal(done.status, 'failed')
    assert.equal(done.outcome, 'not_executed')
    const receipt = (await on.rpc('eth_getTransactionReceipt', [done.transactions[0]?.tx_hash])) as {
      status: string
    }
    assert.equal(receipt.status, '0x1')
    assert.equal(await cash(user), 10_000_000_000n)
    const { availUnits, heldUnits } = await freeOf(user)
    assert.deepEqual([availUnits, heldUnits], [10_000_000_000n, 0n])
    await on.rpc('evm_setAutomine', [true])
    assert.equal((await deposit(user)).outcome, 'executed')
  })

  type Stored = { n: number; nonce: bigint; raw: string; ext_id: string }
  const carriersOf = (user: User) =>
    send<Stored>(
      on.database.pool,
      `select c.n, c.nonce, c.raw, c.ext_id from carrier c join effect e on e.id = c.effect_id
       join task t on t.id = e.task_id where t.user_id = $1 order by c.n`,
      [user.id],
    )
  /** A deposit that offers too little, since the chain became ten times as dear before it was sent. */
  const stuck = async (user: User) => {
    await fault({ status: 503, methods: sending })
    const going = deposit(user)
    await stateOf(user, 'reconciling')
    await on.rpc('anvil_setNextBlockBaseFeePerGas', [`0x${(10n * gwei).toString(16)}`])
    await on.rpc('evm_mine')
    await on.rpc('evm_setAutomine', [false])
    await on.control('DELETE', '/faults', {})
    const carriers = await eventually(
      async () => {
        const found = await carriersOf(user)
        return found.length > 1 ? found : undefined
      },
      'a replacement',
      20_000,
    )
    const replacement = carriers[1]!.ext_id
    await eventually(
      async () => ((await on.rpc('eth_getTransactionByHash', [replacement])) ? true : undefined),
      'the replacement at the node',
    )
    return { going, carriers }
  }
  const feesOf = (raw: string) => {
    const { maxFeePerGas = 0n, maxPriorityFeePerGas = 0n } = parseTransaction(raw as `0x${string}`)
    return [maxFeePerGas, maxPriorityFeePerGas] as const
  }

  test('a stuck transaction is replaced under its nonce at an eighth more, and one of them is mined', async () => {
    const user = await on.richUser()
    const { going, carriers } = await stuck(user)
    const [first, second] = carriers as [Stored, Stored]
    assert.equal(first.nonce, second.nonce)
    for (const [index, fee] of feesOf(second.raw).entries())
      assert.ok(fee * 8n >= feesOf(first.raw)[index]! * 9n)
    await on.rpc('evm_setAutomine', [true])
    await on.rpc('evm_mine')
    const done = await going
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    const statuses = done.transactions.map(({ status }) => status)
    assert.equal(statuses.filter((each) => each === 'finalized').length, 1)
    assert.ok(
      statuses.every((each) => each === 'finalized' || each === 'replaced'),
      statuses.join(),
    )
    assert.equal(await on.flows(user), 1)
  })

  test('the transaction that was replaced may still be the one that is mined', async () => {
    const user = await on.richUser()
    const { going, carriers } = await stuck(user)
    await on.rpc('anvil_dropAllTransactions')
    await on.rpc('anvil_setNextBlockBaseFeePerGas', [`0x${gwei.toString(16)}`])
    await on.rpc('eth_sendRawTransaction', [carriers[0]?.raw])
    await on.rpc('evm_mine')
    await on.rpc('evm_setAutomine', [true])
    const done = await going
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.equal(done.result.tx_hash, carriers[0]?.ext_id)
    assert.equal(await on.flows(user), 1)
  })

  test('what the chain never took before its deadline is given up with a proof, and its money is free', async () => {
    const user = await on.richUser()
    await fault({ status: 503, methods: sending })
    const going = deposit(user)
    await stateOf(user, 'reconciling')
    await on.control('POST', '/time', { advance_seconds: 400 })
    await on.rpc('evm_mine')
    const done = await going
    assert.equal(done.status, 'failed', JSON.stringify(done))
    assert.equal(done.outcome, 'not_executed')
    assert.equal(done.error.code, 'expired')
    const [effect] = await send<{ status: string; proof: { executions: number } }>(
      on.database.pool,
      'select status, proof from effect where task_id = $1',
      [done.task_id],
    )
    assert.equal(effect?.status, 'dropped')
    assert.equal(effect?.proof.executions, 0)
    assert.equal((await freeOf(user)).heldUnits, 0n)
    await on.control('DELETE', '/faults', {})
    const lanes = await on.main.keeper.reconcile()
    assert.equal(lanes.reduce((sum, each) => sum + each.resent, 0) >= 1, true)
    assert.equal((await deposit(user)).outcome, 'executed')
    assert.equal(await on.flows(user), 1)
  })

  test('nothing is completed before finality, and a reorganisation only makes it wait', async () => {
    await using second = on.instance({ row: (row) => ({ ...row, confirmations: 3 }) })
    await on.main.ground[Symbol.asyncDispose]()
    const user = await on.richUser()
    const going = second.call('earn_deposit', { amount_usdc: '100' }, user, { timeoutMs: 30_000 })
    await stateOf(user, 'confirming')
    assert.equal((await taskOf(user))?.status, 'running')
    await on.control('POST', '/chains/8453/reorg', { depth: 1 })
    await eventually(
      async () => {
        await on.rpc('evm_mine')
        return (await taskOf(user))?.status === 'completed' ? true : undefined
      },
      'completion after the reorganisation',
      25_000,
    )
    assert.equal((await going).outcome, 'executed')
    assert.equal(await on.flows(user), 1)
  })
})

describe('lanes', () => {
  let on: Stage
  before(async () => {
    on = await stage()
  })
  after(async () => {
    await on[Symbol.asyncDispose]()
  })

  const deposit = (user: User, timeoutMs = 30_000) =>
    on.call('earn_deposit', { amount_usdc: '10' }, user, { timeoutMs })
  const lanes = () =>
    send<{ signer: string; next: bigint }>(
      on.database.pool,
      `select signer, next from lane where chain = '8453'`,
    )
  const drift = async () => {
    const rows = await lanes()
    const mined = await Promise.all(
      rows.map(({ signer }) => on.main.base.chain.transactionCount(signer, 'latest')),
    )
    return rows.map(({ next }, index) => BigInt(next) - (mined[index] ?? 0n))
  }
  const zero = (list: bigint[]) => list.every((each) => each === 0n)

  test('many users over two instances take every number once', async () => {
    const other = on.instance()
    try {
      const users = await Promise.all(Array.from({ length: 8 }, () => on.richUser()))
      const calls = users.flatMap((user) =>
        [on.main, other, on.main, other].map((instance) =>
          instance.call('earn_deposit', { amount_usdc: '10' }, user, { timeoutMs: 60_000 }),
        ),
      )
      for (const done of await Promise.all(calls))
        assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
      for (const user of users) assert.equal(await on.flows(user), 4)
      assert.ok(zero(await drift()), String(await drift()))
      const rows = await lanes()
      assert.ok(rows.length > 1, 'the work was spread over lanes')
    } finally {
      await other[Symbol.asyncDispose]()
    }
  })

  test('a counter that drifted far ahead comes back, and the next deposit is mined at once', async () => {
    await send(on.database.pool, `update lane set next = next + 342 where chain = '8453'`)
    const startedMs = performance.now()
    await on.main.keeper.reconcile()
    assert.ok(zero(await drift()))
    assert.ok(performance.now() - startedMs < 5_000)
    assert.equal((await deposit(await on.richUser())).outcome, 'executed')
  })

  test('a gap below a stored transaction is filled and frees it', async () => {
    const user = await on.richUser()
    await send(on.database.pool, `update lane set next = next + 3 where chain = '8453'`)
    const going = deposit(user)
    await eventually(async () => {
      const { tasks } = await on.main.ground.tasks.list(user.id, { skip: 0, limit: 1 })
      return tasks[0]?.state === 'submitted' ? true : undefined
    }, 'a transaction that waits behind a gap')
    const reports = await on.main.keeper.reconcile()
    assert.equal(reports.reduce((sum, each) => sum + each.filled, 0) >= 3, true)
    assert.equal((await going).outcome, 'executed')
    assert.ok(zero(await drift()))
    assert.equal(await on.flows(user), 1)
  })

  test('a chain that comes back older than the database gets its transactions again', async () => {
    const user = await on.richUser()
    await on.control('POST', '/chains/8453/stop')
    await on.control('POST', '/chains/8453/start')
    const snapshot = await on.rpc('evm_snapshot')
    const done = await deposit(user)
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    await on.rpc('evm_revert', [snapshot])
    assert.equal(await on.flows(user), 0)
    assert.ok(!zero(await drift()))
    const startedMs = performance.now()
    await on.main.keeper.reconcile()
    assert.ok(zero(await drift()))
    assert.ok(performance.now() - startedMs < 5_000)
    assert.equal(await on.flows(user), 1)
  })

  test('drained lanes pause the service before a task exists, and it recovers by itself', async () => {
    const user = await on.richUser()
    const { signers } = on.main.base.sponsor
    const balance = (wei: string) =>
      Promise.all(signers.map((signer) => on.rpc('anvil_setBalance', [signer, wei])))
    await balance('0x0')
    try {
      const noticed = () =>
        on.main.base.sponsor.ready().then(
          () => undefined,
          () => true,
        )
      await eventually(noticed, 'the pause')
      const fault = await deposit(user).catch((thrown: unknown) => thrown)
      assert.ok(fault instanceof Fault)
      assert.equal(fault.code, 'unavailable')
      assert.equal(fault.extras.reason, 'sponsor_paused')
    } finally {
      await balance('0x56bc75e2d63100000')
    }
    const done = await eventually(
      () => deposit(user).catch((): undefined => undefined),
      'recovery from the pause',
    )
    assert.equal(done.outcome, 'executed')
  })
})
