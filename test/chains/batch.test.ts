import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { parseTransaction } from 'viem'
import type { NonceReport } from '#engines/evm-batch/nonce-repair.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { query } from '#store/query.ts'
import { eventually } from '../harness/gateway.ts'
import { type ChainsApp, createChainsApp, type User } from './chains-app.ts'

const gwei = 1_000_000_000n
const sendMethods = ['eth_sendRawTransaction']

describe('batches on a failing chain', () => {
  let app: ChainsApp
  before(async () => {
    app = await createChainsApp({
      adjustChain: (row) => ({ ...row, stuckAfterMs: 400, batchTtlSeconds: 300 }),
    })
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
  })
  beforeEach(async () => {
    await app.control('DELETE', '/faults', {})
    await app.rpc('evm_setAutomine', [true])
    await app.rpc('anvil_setNextBlockBaseFeePerGas', [`0x${gwei.toString(16)}`])
    await app.rpc('evm_mine')
    await app.main.chains.nonceRepair.reconcile()
  })

  const fault = (what: object) => app.control('PUT', '/faults', { target: 'evm:8453', ...what })
  const deposit = (user: User, amount_usdc = '100', timeoutMs = 30_000) =>
    app.call('earn_deposit', { amount_usdc }, user, { timeoutMs })
  const cash = async (user: User) => (await app.main.vault.account(user.evm)).cashUnits
  const pooled = async () => Number(((await app.rpc('txpool_status')) as { pending: string }).pending)
  const taskOf = async (user: User) => {
    const { tasks } = await app.main.taskEngine.tasks.list(user.id, { skip: 0, limit: 1 })
    return tasks[0]
  }
  const stateOf = async (user: User, state: string) =>
    eventually(
      async () => ((await taskOf(user))?.state === state ? true : undefined),
      `state ${state}`,
      15_000,
    )
  const freeOf = async (user: User) =>
    app.main.taskEngine.ledger.balance(app.database.pool, {
      owner: user.id,
      asset: `8453:${app.main.usdc.toLowerCase()}`,
      subAccount: 'wallet',
    })

  test('a reply that is lost after the send neither loses nor doubles the deposit', async () => {
    const user = await app.fundedUser()
    await fault({ drop_reply: true, methods: sendMethods, count: 2 })
    const done = await deposit(user)
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.equal(done.transactions.length, 1)
    assert.equal(await app.flows(user), 1)
  })

  test('a node that rejects connections gets the same bytes again', async () => {
    const user = await app.fundedUser()
    await fault({ status: 503, methods: sendMethods, count: 2 })
    const done = await deposit(user)
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.equal(done.transactions.length, 1)
    assert.equal(await app.flows(user), 1)
  })

  test('while the chain is silent the outcome is unknown, and afterwards it is the truth', async () => {
    const user = await app.fundedUser()
    await app.rpc('evm_setAutomine', [false])
    const pendingDeposit = deposit(user)
    await eventually(async () => ((await pooled()) > 0 ? true : undefined), 'a transaction in the pool')
    await fault({ status: 502 })
    await stateOf(user, 'reconciling')
    assert.equal((await taskOf(user))?.outcome, 'unknown')
    await app.control('DELETE', '/faults', {})
    await app.rpc('evm_setAutomine', [true])
    await app.rpc('evm_mine')
    const done = await pendingDeposit
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    assert.equal(await app.flows(user), 1)
  })

  test('a batch that the database forgot is looked up beyond the deadline, and is not called not executed', async () => {
    const user = await app.fundedUser()
    const send = () =>
      app.call('earn_deposit', { amount_usdc: '100' }, user, { key: 'forgotten', timeoutMs: 30_000 })
    const first = await send()
    const { pool } = app.database
    await query(pool, 'delete from idempotency where user_id = $1', [user.id])
    await query(pool, 'update task set execution_id = null, idempotency_key = null where id = $1', [
      first.task_id,
    ])
    await query(
      pool,
      'delete from tx_attempt using effect where effect_id = effect.id and effect.task_id = $1',
      [first.task_id],
    )
    await query(pool, 'delete from effect where task_id = $1', [first.task_id])
    await fault({ status: 503, methods: ['eth_getTransactionReceipt'] })
    const again = send()
    await stateOf(user, 'reconciling')
    const polls = async () => {
      const [row] = await query<{ polls: number }>(
        pool,
        `update task set deadline = now() - interval '1 hour' where user_id = $1 and status = 'running'
           returning (data ->> 'polls')::int as polls`,
        [user.id],
      )
      assert.ok(row, 'the task has ended')
      return row.polls
    }
    const before = await polls()
    await eventually(async () => (await polls()) > before || undefined, 'a look-up after the deadline')
    await app.control('DELETE', '/faults', {})
    const found = await again
    assert.equal(found.outcome, 'executed', JSON.stringify(found))
    assert.notEqual(found.task_id, first.task_id)
    assert.equal(found.result.tx_hash, first.result.tx_hash)
    assert.equal(await app.flows(user), 1)
  })

  test('an authorization that the chain skips ends as not executed, although the receipt succeeded', async () => {
    const user = await app.fundedUser()
    await app.rpc('evm_setAutomine', [false])
    const pendingDeposit = deposit(user)
    await eventually(async () => ((await pooled()) > 0 ? true : undefined), 'a transaction in the pool')
    await app.rpc('anvil_setNonce', [user.evm, '0x5'])
    await app.rpc('evm_mine')
    const done = await pendingDeposit
    assert.equal(done.status, 'failed')
    assert.equal(done.outcome, 'not_executed')
    const receipt = (await app.rpc('eth_getTransactionReceipt', [done.transactions[0]?.tx_hash])) as {
      status: string
    }
    assert.equal(receipt.status, '0x1')
    assert.equal(await cash(user), 10_000_000_000n)
    const { availUnits, heldUnits } = await freeOf(user)
    assert.deepEqual([availUnits, heldUnits], [10_000_000_000n, 0n])
    await app.rpc('evm_setAutomine', [true])
    assert.equal((await deposit(user)).outcome, 'executed')
  })

  type Stored = { n: number; nonce: bigint; raw: string; external_id: string }
  const attemptsOf = (user: User) =>
    query<Stored>(
      app.database.pool,
      `select c.n, c.nonce, c.raw, c.external_id from tx_attempt c join effect e on e.id = c.effect_id
       join task t on t.id = e.task_id where t.user_id = $1 order by c.n`,
      [user.id],
    )
  /** A deposit with too low a fee, because gas became ten times as expensive before it was sent. */
  const stuck = async (user: User) => {
    await fault({ status: 503, methods: sendMethods })
    const pendingDeposit = deposit(user)
    await stateOf(user, 'reconciling')
    await app.rpc('anvil_setNextBlockBaseFeePerGas', [`0x${(10n * gwei).toString(16)}`])
    await app.rpc('evm_mine')
    await app.rpc('evm_setAutomine', [false])
    await app.control('DELETE', '/faults', {})
    const attempts = await eventually(
      async () => {
        const found = await attemptsOf(user)
        return found.length > 1 ? found : undefined
      },
      'a replacement',
      20_000,
    )
    const replacement = attempts[1]!.external_id
    await eventually(
      async () => ((await app.rpc('eth_getTransactionByHash', [replacement])) ? true : undefined),
      'the replacement at the node',
    )
    return { pendingDeposit, attempts }
  }
  const feesOf = (raw: string) => {
    const { maxFeePerGas = 0n, maxPriorityFeePerGas = 0n } = parseTransaction(raw as `0x${string}`)
    return [maxFeePerGas, maxPriorityFeePerGas] as const
  }

  test('a stuck transaction is replaced under its nonce at an eighth more, and one of them is mined', async () => {
    const user = await app.fundedUser()
    const { pendingDeposit, attempts } = await stuck(user)
    const [first, second] = attempts as [Stored, Stored]
    assert.equal(first.nonce, second.nonce)
    for (const [index, fee] of feesOf(second.raw).entries())
      assert.ok(fee * 8n >= feesOf(first.raw)[index]! * 9n)
    await app.rpc('evm_setAutomine', [true])
    await app.rpc('evm_mine')
    const done = await pendingDeposit
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    const statuses = done.transactions.map(({ status }) => status)
    assert.equal(statuses.filter((each) => each === 'finalized').length, 1)
    assert.ok(
      statuses.every((each) => each === 'finalized' || each === 'replaced'),
      statuses.join(),
    )
    assert.equal(await app.flows(user), 1)
  })

  test('a replaced transaction may still be the mined one', async () => {
    const user = await app.fundedUser()
    const { pendingDeposit, attempts } = await stuck(user)
    await app.rpc('anvil_dropAllTransactions')
    await app.rpc('anvil_setNextBlockBaseFeePerGas', [`0x${gwei.toString(16)}`])
    await app.rpc('eth_sendRawTransaction', [attempts[0]?.raw])
    await app.rpc('evm_mine')
    await app.rpc('evm_setAutomine', [true])
    const done = await pendingDeposit
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.equal(done.result.tx_hash, attempts[0]?.external_id)
    assert.equal(await app.flows(user), 1)
  })

  test('a transaction that the chain never included expires at its deadline with a proof, and its hold is released', async () => {
    const user = await app.fundedUser()
    await fault({ status: 503, methods: sendMethods })
    const pendingDeposit = deposit(user)
    await stateOf(user, 'reconciling')
    await app.control('POST', '/time', { advance_seconds: 400 })
    await app.rpc('evm_mine')
    const done = await pendingDeposit
    assert.equal(done.status, 'failed', JSON.stringify(done))
    assert.equal(done.outcome, 'not_executed')
    assert.equal(done.error.code, 'expired')
    const [effect] = await query<{ status: string; proof: { executions: number } }>(
      app.database.pool,
      'select status, proof from effect where task_id = $1',
      [done.task_id],
    )
    assert.equal(effect?.status, 'dropped')
    assert.equal(effect?.proof.executions, 0)
    assert.equal((await freeOf(user)).heldUnits, 0n)
    await app.control('DELETE', '/faults', {})
    const repairReports = await app.main.chains.nonceRepair.reconcile()
    assert.equal(repairReports.reduce((sum, each) => sum + each.resent, 0) >= 1, true)
    assert.equal((await deposit(user)).outcome, 'executed')
    assert.equal(await app.flows(user), 1)
  })

  test('no task completes before finality, and a reorganisation only delays it', async () => {
    await using second = await app.instance({ adjustChain: (row) => ({ ...row, confirmations: 3 }) })
    await app.main.taskEngine[Symbol.asyncDispose]()
    const user = await app.fundedUser()
    const pendingDeposit = second.call('earn_deposit', { amount_usdc: '100' }, user, { timeoutMs: 30_000 })
    await stateOf(user, 'confirming')
    assert.equal((await taskOf(user))?.status, 'running')
    await app.control('POST', '/chains/8453/reorg', { depth: 1 })
    await eventually(
      async () => {
        await app.rpc('evm_mine')
        return (await taskOf(user))?.status === 'completed' ? true : undefined
      },
      'completion after the reorganisation',
      25_000,
    )
    assert.equal((await pendingDeposit).outcome, 'executed')
    assert.equal(await app.flows(user), 1)
  })
})

describe('lanes', () => {
  let app: ChainsApp
  before(async () => {
    app = await createChainsApp()
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
  })

  const deposit = (user: User, timeoutMs = 30_000) =>
    app.call('earn_deposit', { amount_usdc: '10' }, user, { timeoutMs })
  const sequences = () =>
    query<{ signer: string; next: bigint }>(
      app.database.pool,
      `select signer, next from nonce_sequence where chain = '8453'`,
    )
  const drift = async () => {
    const rows = await sequences()
    const mined = await Promise.all(
      rows.map(({ signer }) => app.main.base.chain.transactionCount(signer, 'latest')),
    )
    return rows.map(({ next }, index) => BigInt(next) - (mined[index] ?? 0n))
  }
  const zero = (list: bigint[]) => list.every((each) => each === 0n)
  /** How many transactions a reconciliation has sent. */
  const sumsOf = (reports: readonly NonceReport[]) => {
    const sumOf = (name: 'resent' | 'filled' | 'replaced') =>
      reports.reduce((sum, each) => sum + each[name], 0)
    return { resent: sumOf('resent'), filled: sumOf('filled'), replaced: sumOf('replaced') }
  }

  test('many users over two instances use every nonce once', async () => {
    const other = await app.instance()
    try {
      const users = await Promise.all(Array.from({ length: 8 }, () => app.fundedUser()))
      const calls = users.flatMap((user) =>
        [app.main, other, app.main, other].map((instance) =>
          instance.call('earn_deposit', { amount_usdc: '10' }, user, { timeoutMs: 60_000 }),
        ),
      )
      for (const done of await Promise.all(calls))
        assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
      for (const user of users) assert.equal(await app.flows(user), 4)
      assert.ok(zero(await drift()), String(await drift()))
      const rows = await sequences()
      assert.ok(rows.length > 1, 'the work was spread over sponsors')
    } finally {
      await other[Symbol.asyncDispose]()
    }
  })

  test('a counter that drifted far ahead is set back, and the next deposit is mined at once', async () => {
    await query(app.database.pool, `update nonce_sequence set next = next + 342 where chain = '8453'`)
    const reports = await app.main.chains.nonceRepair.reconcile()
    assert.ok(zero(await drift()))
    assert.deepEqual(sumsOf(reports), { resent: 0, filled: 0, replaced: 0 }, 'no transaction is needed')
    assert.equal((await deposit(await app.fundedUser())).outcome, 'executed')
  })

  test('a gap below a stored transaction is filled and unblocks it', async () => {
    const user = await app.fundedUser()
    await query(app.database.pool, `update nonce_sequence set next = next + 3 where chain = '8453'`)
    const pendingDeposit = deposit(user)
    await eventually(async () => {
      const { tasks } = await app.main.taskEngine.tasks.list(user.id, { skip: 0, limit: 1 })
      return tasks[0]?.state === 'submitted' ? true : undefined
    }, 'a transaction that waits behind a gap')
    const reports = await app.main.chains.nonceRepair.reconcile()
    assert.equal(reports.reduce((sum, each) => sum + each.filled, 0) >= 3, true)
    assert.equal((await pendingDeposit).outcome, 'executed')
    assert.ok(zero(await drift()))
    assert.equal(await app.flows(user), 1)
  })

  /** The counter falls behind the batch of a deposit. */
  const forgetNonceOf = async (user: User): Promise<string> => {
    const [used] = await query<{ signer: string; nonce: string }>(
      app.database.pool,
      `select a.signer, a.nonce from tx_attempt a join effect e on e.id = a.effect_id join task t on t.id = e.task_id
         where t.user_id = $1`,
      [user.id],
    )
    await query(
      app.database.pool,
      `update nonce_sequence set next = $2 where chain = '8453' and signer = $1`,
      [used!.signer, used!.nonce],
    )
    return used!.signer
  }

  test('batches of accounts that the database does not know are skipped, as those of another installation', async () => {
    const stranger = await app.fundedUser()
    assert.equal((await deposit(stranger)).outcome, 'executed')
    await forgetNonceOf(stranger)
    await query(app.database.pool, 'delete from wallet where user_id = $1', [stranger.id])
    const reports = await app.main.chains.nonceRepair.reconcile('8453')
    assert.deepEqual(
      reports.flatMap(({ unknown }) => unknown ?? []),
      [],
    )
    assert.ok(zero(await drift()))
    assert.equal(app.main.taskEngine.holds.find('8453'), undefined)
    assert.equal((await deposit(await app.fundedUser())).outcome, 'executed')
  })

  test('a batch that the database lost holds its chain, names its user, and goes on by an operator', async () => {
    const user = await app.fundedUser()
    assert.equal((await deposit(user)).outcome, 'executed')
    const before = await sequences()
    const signer = await forgetNonceOf(user)
    const reports = await app.main.chains.nonceRepair.reconcile('8453')
    assert.deepEqual(
      reports.flatMap(({ unknown }) => unknown ?? []),
      ['lost'],
    )
    const [hold] = await query<{
      scope: string
      reason: string
      detail: Record<string, { users: string[] }>
    }>(app.database.pool, 'select scope, reason, detail from money_hold')
    assert.deepEqual([hold?.scope, hold?.reason], ['8453', 'foreign_batches'])
    assert.deepEqual(hold?.detail[`8453:${signer}`]?.users, [user.id])
    const refused = await deposit(user).catch((fault: unknown) => fault)
    assert.ok(refused instanceof Fault)
    assert.deepEqual([refused.code, refused.extras.hold], ['unavailable', 'foreign_batches'])
    for (const { signer, next } of before)
      await query(
        app.database.pool,
        `update nonce_sequence set next = $2 where chain = '8453' and signer = $1`,
        [signer, next],
      )
    const { holds } = app.main.taskEngine
    const isStored = () =>
      holds.list().some(({ scope, comparedAt }) => scope === '8453' && comparedAt === null)
    await eventually(async () => isStored() || undefined, 'a heartbeat shows the hold')
    await query(app.database.pool, 'delete from money_hold')
    await eventually(async () => !holds.find('8453') || undefined, 'the hold ends with its row')
    assert.equal((await deposit(user)).outcome, 'executed')
    assert.equal(await app.flows(user), 2)
  })

  test('a chain that is restored from before the database gets its transactions again', async () => {
    const user = await app.fundedUser()
    await app.control('POST', '/chains/8453/stop')
    await app.control('POST', '/chains/8453/start')
    const snapshot = await app.rpc('evm_snapshot')
    const done = await deposit(user)
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    await app.rpc('evm_revert', [snapshot])
    assert.equal(await app.flows(user), 0)
    assert.ok(!zero(await drift()))
    const reports = await app.main.chains.nonceRepair.reconcile()
    assert.ok(zero(await drift()))
    assert.deepEqual(sumsOf(reports), { resent: 1, filled: 0, replaced: 0 })
    assert.equal(await app.flows(user), 1)
  })

  test('sponsors without funds pause the service before a task exists, and it recovers by itself', async () => {
    const user = await app.fundedUser()
    const { signers } = app.main.base.sponsor
    const balance = (wei: string) =>
      Promise.all(signers.map((signer) => app.rpc('anvil_setBalance', [signer, wei])))
    await balance('0x0')
    try {
      const noticed = () =>
        app.main.base.sponsor.ready().then(
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
