/** A sponsor's nonces that ended tasks hold, or that were never sent: what follows them is mined, and nothing runs twice. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { parseTransaction } from 'viem'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import { query } from '#store/query.ts'
import { eventually } from '../harness/gateway.ts'
import { baseId, type ChainsApp, createChainsApp, type User } from './chains-app.ts'

const gwei = 1_000_000_000n
const adjustChain = (row: EvmChainRow) => ({ ...row, stuckAfterMs: 400, batchTtlSeconds: 300 })
type Stored = { signer: string; n: number; nonce: string; raw: string; external_id: string; status: string }

let app: ChainsApp
const endsWithinMs = 300_000
const deposit = (user: User) =>
  app.call('earn_deposit', { amount_usdc: '10' }, user, { timeoutMs: endsWithinMs })
const rejectSends = () =>
  app.control('PUT', '/faults', {
    target: `evm:${baseId}`,
    status: 503,
    methods: ['eth_sendRawTransaction'],
  })
const acceptSends = () => app.control('DELETE', '/faults', {})
const reconcile = async () =>
  (await app.main.chains.nonceRepair.reconcile()).filter(({ chainId }) => chainId === baseId)
const storedOf = (users: User[]) =>
  query<Stored>(
    app.database.pool,
    `select a.signer, a.n, a.nonce, a.raw, a.external_id, e.status from tx_attempt a
     join effect e on e.id = a.effect_id join task t on t.id = e.task_id
     where t.user_id = any($1::uuid[]) order by a.signer, a.nonce, a.n`,
    [users.map(({ id }) => id)],
  )
const storesAll = (users: User[], count: number) =>
  eventually(
    async () => ((await storedOf(users)).length >= count ? true : undefined),
    `${count} stored transactions`,
    180_000,
  )
const drifts = async () => {
  const rows = await query<{ signer: string; next: string }>(
    app.database.pool,
    'select signer, next from nonce_sequence where chain = $1',
    [baseId],
  )
  const { chain } = app.main.base
  return Promise.all(
    rows.map(async ({ signer, next }) => BigInt(next) - (await chain.transactionCount(signer, 'latest'))),
  )
}
/** The node mines a transaction a moment after it has taken it. */
const waitForZeroDrift = () =>
  eventually(async () => (await drifts()).every((drift) => drift === 0n) || undefined, 'nonces without drift')
const transactionOf = async (hash: string) =>
  (await app.rpc('eth_getTransactionByHash', [hash])) as { blockNumber: string | null } | null
const isMined = async (hash: string) => Boolean((await transactionOf(hash))?.blockNumber)

describe('a sponsor whose oldest nonce belongs to an ended task', () => {
  before(async () => {
    app = await createChainsApp({ adjustChain })
  })
  after(() => app?.[Symbol.asyncDispose]())

  const setBaseFee = async (wei: bigint) => {
    await app.rpc('anvil_setNextBlockBaseFeePerGas', [`0x${wei.toString(16)}`])
    await app.rpc('evm_mine')
  }
  const storedTasks = (users: User[]) =>
    query(
      app.database.pool,
      'select id, status, outcome, error, result, data from task where user_id = any($1::uuid[]) order by id',
      [users.map(({ id }) => id)],
    )
  const lowerFees = async () => {
    await setBaseFee(gwei)
    const isCheap = async () => (await app.main.base.sponsor.fees()).maxFeeWei < 3n * gwei || undefined
    await eventually(isCheap, 'fees of the lower base fee')
  }
  /**
   * The base fee falls with every block, so bytes with old fees become valid again within seconds: raise it just before
   * it matters.
   */
  const raiseFees = () => setBaseFee(10n * gwei)
  const keepFeesHigh = async () => {
    if ((await app.main.base.chain.head()).baseFeeWei < 8n * gwei) await raiseFees()
  }
  const openUsers = () => Promise.all(app.main.base.sponsor.signers.map(() => app.fundedUser()))

  /** One ended deposit for each sponsor, whose bytes the node never got and which are too cheap for it now. */
  async function abandonNonces() {
    await lowerFees()
    const users = await openUsers()
    await rejectSends()
    const calls: ReturnType<typeof deposit>[] = []
    for (const user of users) {
      calls.push(deposit(user))
      // The next one gets another sponsor, because the nonce of this one is taken.
      await storesAll(users, calls.length)
    }
    await app.control('POST', '/time', { advance_seconds: 400 })
    for (const done of await Promise.all(calls)) {
      assert.equal(done.outcome, 'not_executed', JSON.stringify(done))
      assert.equal(done.error.code, 'expired')
    }
    const stored = await storedOf(users)
    assert.equal(stored.length, users.length)
    assert.equal(new Set(stored.map(({ signer }) => signer)).size, users.length)
    return { users, stored }
  }

  test('its nonce is used by an empty transaction, and the later ones are mined', async () => {
    const { users, stored } = await abandonNonces()
    const ended = await storedTasks(users)
    await acceptSends()
    await raiseFees()
    const laterUsers = await openUsers()
    const later = laterUsers.map((user) => deposit(user))
    await storesAll(laterUsers, users.length)
    const floored = (row: EvmChainRow) => {
      const { fees } = row
      return { ...adjustChain(row), fees: { ...fees, priorityFloorWei: fees.priorityFloorWei * 500n } }
    }
    await using other = await app.instance({ adjustChain: floored })
    await raiseFees()
    // Both compute other fees for the same nonces; only one of them may use its own.
    const reports = await Promise.all([reconcile(), other.chains.nonceRepair.reconcile(), reconcile()])
    const replaced = reports.flat().reduce((sum, report) => sum + report.replaced, 0)
    assert.equal(replaced, users.length)
    for (const done of await Promise.all(later))
      assert.equal(done.outcome, 'executed', JSON.stringify(done.error))

    const attempts = await storedOf(users)
    assert.equal(attempts.length, 2 * users.length)
    for (const first of stored) {
      const [stayed, second] = attempts.filter(({ signer }) => signer === first.signer)
      assert.deepEqual(stayed, first)
      assert.deepEqual([second!.nonce, second!.n, second!.status], [first.nonce, 1, 'dropped'])
      const old = parseTransaction(first.raw as `0x${string}`)
      const empty = parseTransaction(second!.raw as `0x${string}`)
      assert.deepEqual(
        [empty.to?.toLowerCase(), empty.value ?? 0n, empty.data],
        [first.signer, 0n, undefined],
      )
      assert.ok(empty.maxFeePerGas! * 8n >= old.maxFeePerGas! * 9n)
      assert.ok(empty.maxPriorityFeePerGas! * 8n >= old.maxPriorityFeePerGas! * 9n)
      assert.ok(empty.maxFeePerGas! <= app.main.base.chain.row.fees.capWei)
      assert.ok(await isMined(second!.external_id))
    }
    await waitForZeroDrift()
    assert.deepEqual(await storedTasks(users), ended)
    for (const user of users) assert.equal(await app.flows(user), 0)
    for (const user of laterUsers) assert.equal(await app.flows(user), 1)
  })

  test('the node has the empty transactions at the end of the round that made them', async () => {
    const { users } = await abandonNonces()
    await acceptSends()
    await raiseFees()
    const replaced = (await reconcile()).reduce((sum, report) => sum + report.replaced, 0)
    assert.equal(replaced, users.length)
    for (const { n, external_id } of await storedOf(users))
      assert.equal(Boolean(await transactionOf(external_id)), n === 1)
    await waitForZeroDrift()
  })

  test('a replacement that was stored and not sent is sent later, without a second one', async () => {
    const { users } = await abandonNonces()
    await raiseFees()
    assert.deepEqual(await reconcile(), [])
    const attempts = await storedOf(users)
    assert.equal(attempts.length, 2 * users.length)
    await acceptSends()
    const reports = await reconcile()
    assert.equal(
      reports.reduce((sum, { replaced }) => sum + replaced, 0),
      0,
    )
    assert.deepEqual(await storedOf(users), attempts)
    await waitForZeroDrift()
    for (const { n, external_id } of attempts) assert.equal(await isMined(external_id), n === 1)
    const [user] = await openUsers()
    assert.equal((await deposit(user!)).outcome, 'executed')
    assert.equal(await app.flows(user!), 1)
  })

  test('the nonce of a live task is left to this task, which raises its own fees', async () => {
    await lowerFees()
    const user = await app.fundedUser()
    await rejectSends()
    const pendingDeposit = deposit(user)
    await storesAll([user], 1)
    const isStuck = async () => {
      const [{ stuck } = { stuck: false }] = await query<{ stuck: boolean }>(
        app.database.pool,
        `select now() - a.at > interval '500 ms' as stuck from tx_attempt a where a.external_id = $1`,
        [(await storedOf([user]))[0]!.external_id],
      )
      return stuck || undefined
    }
    await eventually(isStuck, 'bytes that are old enough to be replaced')
    await raiseFees()
    assert.ok((await reconcile()).every(({ replaced }) => replaced === 0))
    assert.equal((await storedOf([user])).length, 1)
    await acceptSends()
    const raised = async () => {
      await keepFeesHigh()
      return (await storedOf([user])).length > 1 || undefined
    }
    await eventually(raised, 'bytes with higher fees')
    assert.equal((await pendingDeposit).outcome, 'executed')
    const attempts = await storedOf([user])
    assert.ok(attempts.length > 1)
    for (const { raw } of attempts)
      assert.equal(parseTransaction(raw as `0x${string}`).to?.toLowerCase(), user.evm.toLowerCase())
    assert.equal(await app.flows(user), 1)
  })
})

describe('many transactions that the node did not take', () => {
  before(async () => {
    app = await createChainsApp()
  })
  after(() => app?.[Symbol.asyncDispose]())

  test('once it takes them again each is mined once, and no counter drifts', async () => {
    const count = 24
    const users: User[] = []
    while (users.length < count / 4) users.push(await app.fundedUser())
    await rejectSends()
    const calls: ReturnType<typeof deposit>[] = []
    while (calls.length < count) {
      const turn = Math.min(24, count - calls.length)
      for (let n = 0; n < turn; n++) calls.push(deposit(users[calls.length % users.length]!))
      await storesAll(users, calls.length)
    }
    const drifted = (await drifts()).reduce((sum, drift) => sum + drift, 0n)
    assert.equal(drifted, BigInt(count))
    await acceptSends()
    await reconcile()
    // The node has all of them, so that none waits for the next look of its task.
    for (const { external_id } of await storedOf(users)) assert.ok(await transactionOf(external_id))
    await waitForZeroDrift()
    for (const done of await Promise.all(calls))
      assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    const stored = await storedOf(users)
    assert.equal(stored.length, count)
    assert.equal(new Set(stored.map(({ signer, nonce }) => `${signer} ${nonce}`)).size, count)
    const flows = await Promise.all(users.map((user) => app.flows(user)))
    assert.equal(
      flows.reduce((sum, flow) => sum + flow, 0),
      count,
    )
    await waitForZeroDrift()
  })
})
