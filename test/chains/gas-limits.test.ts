/** Gas limits that a chain refuses take no nonce of a sponsor, or only for a moment. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { parseTransaction } from 'viem'
import { Fault } from '#kernel/contract/fault.ts'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { query } from '#store/query.ts'
import { eventually } from '../harness/gateway.ts'
import { type Answer, baseId, type ChainsApp, createChainsApp, type User } from './chains-app.ts'

type Call = { id: unknown; method: string }
type Reply = { id: unknown; result?: unknown; error?: unknown }

/** What the node answers by method, once it has done what was asked. */
const answers = new Map<string, Omit<Reply, 'id'>>()
const estimate = (gas: bigint) => answers.set('eth_estimateGas', { result: `0x${gas.toString(16)}` })
/** The gas that the provider of a swap names for its call. */
const quoted: { gas?: string | undefined } = {}
/** The node gets no transactions. */
let isCut = false
const wrapNet = (net: Net): Net => ({
  async fetch(request) {
    const { body = '', url } = request
    if (isCut && body.includes('eth_sendRawTransaction')) return { status: 503, body: '' }
    const reply = await net.fetch(request)
    if (quoted.gas && url.endsWith('/quote/v2'))
      return { ...reply, body: reply.body.replace(/"gas":"\d+"/, `"gas":"${quoted.gas}"`) }
    if (![...answers.keys()].some((method) => body.includes(method))) return reply
    const methods = new Map(([JSON.parse(body)].flat() as Call[]).map(({ id, method }) => [id, method]))
    const replies = ([JSON.parse(reply.body)].flat() as Reply[]).map((each) => {
      const answer = answers.get(methods.get(each.id) ?? '')
      return answer ? { id: each.id, ...answer } : each
    })
    return { ...reply, body: JSON.stringify(body.startsWith('[') ? replies : replies[0]) }
  },
})

let app: ChainsApp
const deposit = (user: User, timeoutMs = 30_000) =>
  app.call('earn_deposit', { amount_usdc: '10' }, user, { timeoutMs })
const counters = () =>
  query<{ signer: string; next: string }>(
    app.database.pool,
    'select signer, next from nonce_sequence where chain = $1 order by signer',
    [baseId],
  )
const attemptsOf = (user: User) =>
  query<{ n: number; nonce: string; raw: string; external_id: string }>(
    app.database.pool,
    `select a.n, a.nonce, a.raw, a.external_id from tx_attempt a join effect e on e.id = a.effect_id
     join task t on t.id = e.task_id where t.user_id = $1 order by e.at, a.n`,
    [user.id],
  )
const walletOf = (user: User) =>
  app.main.taskEngine.ledger.balance(app.database.pool, {
    owner: user.id,
    asset: `${baseId}:${app.main.usdc.toLowerCase()}`,
    subAccount: 'wallet',
  })
const assertNothingMoved = async (user: User) => {
  assert.equal(await app.flows(user), 0)
  assert.equal((await app.main.vault.account(user.evm)).cashUnits, 10_000_000_000n)
  assert.equal((await walletOf(user)).heldUnits, 0n)
}
beforeEach(() => {
  answers.clear()
  quoted.gas = undefined
  isCut = false
})

describe('calls that need more gas than one transaction may use', () => {
  before(async () => {
    app = await createChainsApp({ wrapNet })
  })
  after(() => app?.[Symbol.asyncDispose]())

  test('are refused before a task exists, and take no nonce', async () => {
    const user = await app.fundedUser()
    assert.equal((await deposit(await app.fundedUser())).outcome, 'executed')
    const before = await counters()
    estimate(12_000_001n)
    const fault = await deposit(user).catch((error: unknown) => error)
    assert.ok(fault instanceof Fault, JSON.stringify(fault))
    assert.equal(fault.code, 'conflict')
    assert.match(fault.message, /more gas than one transaction on Base may use/)
    assert.deepEqual(await counters(), before)
    await assertNothingMoved(user)
    estimate(12_000_000n)
    assert.equal((await deposit(user)).outcome, 'executed')
    const [{ raw } = { raw: '0x' }] = await attemptsOf(user)
    const { gas } = parseTransaction(raw as `0x${string}`)
    assert.ok(gas! > 12_000_000n && gas! <= 2n ** 24n, String(gas))
  })

  test('are found by a simulation that has no more gas, whatever the node estimates', async () => {
    const user = await app.fundedUser()
    const simulated = async (loops: number) => {
      const burner = `0x${loops.toString(16).padStart(40, 'b')}`
      // Counts up to the number of loops, 29 gas each.
      await app.rpc('anvil_setCode', [
        burner,
        `0x5f5b6001018063${loops.toString(16).padStart(8, '0')}1160015700`,
      ])
      return app.main.base.chain.simulate(user.evm, [{ to: burner, value: 0n, data: '0x' }])
    }
    const modest = await simulated(300_000)
    assert.ok(modest.ok && modest.gas > 8_000_000n, JSON.stringify(modest, String))
    estimate(100_000n)
    const greedy = await simulated(700_000)
    assert.ok(!greedy.ok)
    assert.match(greedy.reason, /more gas than one transaction on Base may use/)
  })
})

describe('a quote that names much gas', () => {
  before(async () => {
    app = await createChainsApp({ wrapNet }, { swaps: true })
  })
  after(() => app?.[Symbol.asyncDispose]())

  const swap = (user: User) =>
    app.call(
      'swap_execute',
      { chain_id_in: baseId, token_in: 'USDC', token_out: 'WETH', amount: '30000000', slippage_bps: 500 },
      user,
    )
  const gasOf = async (user: User) => {
    const attempts = await attemptsOf(user)
    return parseTransaction(attempts.at(-1)!.raw as `0x${string}`).gas!
  }

  test('gets no more of it than three times what the simulation needs', async () => {
    const user = await app.fundedUser()
    assert.equal((await swap(user)).outcome, 'executed')
    const plain = await gasOf(user)
    quoted.gas = '11999999'
    const done = await swap(user)
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    const gas = await gasOf(user)
    assert.ok(gas > plain && gas < 3n * plain, `${gas} after ${plain}`)
  })

  test('is refused where no transaction may have as much, and takes no nonce', async () => {
    const user = await app.fundedUser()
    assert.equal((await swap(user)).outcome, 'executed')
    const before = await counters()
    quoted.gas = '12000001'
    const fault = await swap(user).catch((error: unknown) => error)
    assert.ok(fault instanceof Fault, JSON.stringify(fault))
    assert.equal(fault.code, 'no_route')
    assert.match(fault.message, /more gas than one transaction on Base may use/)
    assert.deepEqual(await counters(), before)
  })
})

describe('a gas limit that the node refuses', () => {
  // The gateway has outdated limits of the chain.
  const outdated = (row: EvmChainRow) => ({
    ...row,
    gas: { ...row.gas, txMax: 29_000_000n, callsMax: 20_000_000n },
  })
  before(async () => {
    app = await createChainsApp({ wrapNet, adjustChain: outdated })
  })
  after(() => app?.[Symbol.asyncDispose]())
  beforeEach(() => app.rpc('evm_setAutomine', [true]))

  const refuse = async (users: readonly User[]): Promise<Promise<Answer>[]> => {
    estimate(18_000_000n)
    const calls = users.map((user) => deposit(user))
    for (const user of users)
      await eventually(async () => (await attemptsOf(user)).length > 0, 'a signed deposit')
    answers.clear()
    return calls
  }

  test('its nonce is used by an empty transaction at once, and the later ones of every sponsor are mined', async () => {
    const { signers } = app.main.base.sponsor
    const users = await Promise.all(signers.map(() => app.fundedUser()))
    const laterUsers = await Promise.all(signers.map(() => app.fundedUser()))
    const refused = await refuse(users)
    const later = laterUsers.map((user) => deposit(user))
    for (const done of await Promise.all(refused)) {
      assert.equal(done.outcome, 'not_executed', JSON.stringify(done))
      assert.equal(done.error.code, 'tx_failed')
      assert.match(done.error.message, /replaced by an empty one/)
    }
    for (const done of await Promise.all(later))
      assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    for (const user of users) {
      const [first, second, ...others] = await attemptsOf(user)
      assert.deepEqual(others, [])
      assert.equal(second!.nonce, first!.nonce)
      const [old, empty] = [first!, second!].map(({ raw }) => parseTransaction(raw as `0x${string}`))
      assert.ok(old!.gas! > 2n ** 24n)
      assert.deepEqual([empty!.data, empty!.value ?? 0n], [undefined, 0n])
      assert.ok(empty!.maxFeePerGas! * 8n >= old!.maxFeePerGas! * 9n)
      await assertNothingMoved(user)
      assert.equal((await deposit(user)).outcome, 'executed')
    }
    for (const { signer, next } of await counters())
      assert.equal(BigInt(next), await app.main.base.chain.transactionCount(signer, 'latest'))
  })

  test('it may be mined by another node: the batch is executed once', async () => {
    const user = await app.fundedUser()
    await app.rpc('evm_setAutomine', [false])
    answers.set('eth_sendRawTransaction', { error: { code: -32000, message: 'exceeds block gas limit' } })
    const pendingDeposit = deposit(user)
    const [first, second] = await eventually(async () => {
      const attempts = await attemptsOf(user)
      return attempts.length > 1 ? attempts : undefined
    }, 'a replacement')
    await eventually(
      async () => (await app.rpc('eth_getTransactionByHash', [second!.external_id])) !== null,
      'the replacement is sent',
    )
    isCut = true
    await app.rpc('anvil_dropAllTransactions')
    await app.rpc('eth_sendRawTransaction', [first!.raw])
    await app.rpc('evm_mine')
    const done = await pendingDeposit
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.equal(done.result.tx_hash, first!.external_id)
    assert.equal(await app.flows(user), 1)
    assert.equal((await attemptsOf(user)).length, 2)
    answers.clear()
    isCut = false
    await app.rpc('evm_setAutomine', [true])
    assert.equal((await deposit(user)).outcome, 'executed')
  })

  test('bytes that another node has mined at once are not replaced', async () => {
    const user = await app.fundedUser()
    answers.set('eth_sendRawTransaction', { error: { code: -32000, message: 'exceeds block gas limit' } })
    const done = await deposit(user)
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.equal((await attemptsOf(user)).length, 1)
    assert.equal(await app.flows(user), 1)
  })
})
