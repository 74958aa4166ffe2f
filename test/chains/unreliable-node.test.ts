/** A node's answers may differ from the chain: no deposit is misreported because of it, and none is made twice. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { randomOf } from '../crash/venue-traders.ts'
import { eventually } from '../harness/gateway.ts'
import { proofSeed } from '../proof/support/seed.ts'
import { type Answer, baseId, type ChainsApp, createChainsApp, type User } from './chains-app.ts'
import { type NodeFailures, unreliableNode } from './unreliable-node.ts'

const blockMs = 250

describe('a node that lags, loses transactions and answers with HTML pages', () => {
  let app: ChainsApp
  let node: Awaited<ReturnType<typeof unreliableNode>>
  const stop = new AbortController()
  let mining: Promise<void>
  before(async () => {
    node = await unreliableNode(randomOf(proofSeed('unreliable-node')))
    app = await createChainsApp({
      adjustChain: (row) => {
        if (row.id !== baseId) return row
        node.before(row.rpcUrl)
        return { ...row, rpcUrl: node.url, confirmations: 2 }
      },
    })
    mining = (async () => {
      while (!stop.signal.aborted) {
        await app.rpc('evm_mine')
        await delay(blockMs, undefined, { signal: stop.signal }).catch(() => undefined)
      }
    })()
  })
  after(async () => {
    stop.abort()
    await mining
    node?.set({})
    await app?.[Symbol.asyncDispose]()
    await node?.[Symbol.asyncDispose]()
  })
  beforeEach(() => node.set({}))

  const deposit = (user: User, amount_usdc: string) =>
    app.call('earn_deposit', { amount_usdc }, user, { timeoutMs: 60_000 })
  const sharesOf = async (user: User) => (await app.main.vault.account(user.evm)).sharesUnits
  const bookedOf = async (user: User) => {
    const books = await app.main.taskEngine.ledger.subAccounts(
      app.database.pool,
      user.id,
      `${baseId}:${app.main.vault.address.toLowerCase()}`,
    )
    return books.reduce((sum, { availUnits, heldUnits }) => sum + availUnits + heldUnits, 0n)
  }
  const executed = (answers: Answer[]) => answers.filter(({ outcome }) => outcome === 'executed').length

  /** A request that is rejected before a task exists is repeated until it is accepted. */
  const callUntilAnswered = async (name: string, input: object, user: User): Promise<Answer> => {
    for (let turn = 0; ; turn++) {
      try {
        return await app.call(name, input, user, { timeoutMs: 60_000 })
      } catch (error) {
        const { retryable } = error as { retryable?: boolean }
        if (!retryable || turn > 60) throw error
        await delay(100)
      }
    }
  }

  test('with lagging siblings, HTML pages, 429 and cut connections every task agrees with the chain', async () => {
    const users = await Promise.all([app.fundedUser(), app.fundedUser()])
    for (const user of users) assert.equal((await deposit(user, '20')).outcome, 'executed')
    node.set({ lag: { chance: 0.4, blocks: 2 }, broken: 0.05 })
    for (const user of users) {
      const made = await Promise.all(
        Array.from({ length: 6 }, (_, n) =>
          callUntilAnswered('earn_deposit', { amount_usdc: String(5 + n) }, user),
        ),
      )
      assert.equal(executed(made), 6, JSON.stringify(made))
      const out: Promise<Answer>[] = []
      for (const { result } of made) {
        out.push(callUntilAnswered('earn_withdraw', { position_id: result.position_id }, user))
        await delay(40)
      }
      const left = await Promise.all(out)
      assert.equal(executed(left), 6, JSON.stringify(left))
      for (const [index, { result }] of left.entries())
        assert.equal(result.shares_delta, `-${made[index]!.result.shares_delta}`)
    }
    node.set({})
    assert.ok(node.counts.lagged > 0 && node.counts.broken > 0, JSON.stringify(node.counts))
    for (const user of users) {
      assert.equal(await app.flows(user), 13)
      assert.equal(await bookedOf(user), await sharesOf(user))
    }
  })

  test('a provider that answers the calls of one request from different nodes causes no other outcome', async () => {
    const user = await app.fundedUser()
    assert.equal((await deposit(user, '20')).outcome, 'executed')
    node.set({ lag: { chance: 0.4, blocks: 2, splits: true } })
    const made = await Promise.all(
      Array.from({ length: 4 }, (_, n) =>
        callUntilAnswered('earn_deposit', { amount_usdc: String(5 + n) }, user),
      ),
    )
    assert.equal(executed(made), 4, JSON.stringify(made))
    for (const { result } of made) {
      const left = await callUntilAnswered('earn_withdraw', { position_id: result.position_id }, user)
      assert.equal(left.outcome, 'executed', JSON.stringify(left))
    }
    node.set({})
    assert.equal(await app.flows(user), 9)
    assert.equal(await bookedOf(user), await sharesOf(user))
  })

  test('cash that a lagging sibling does not show yet is deposited', async () => {
    const user = await app.fundedUser('10')
    const { lagged } = node.counts
    node.set({ lag: { chance: 1, blocks: 6, splits: true, onlySimulations: true } })
    const done = await callUntilAnswered('earn_deposit', { amount_usdc: '10' }, user)
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    assert.ok(node.counts.lagged > lagged)
    assert.equal(await app.flows(user), 1)
  })

  test('a node that does not show the cash in time is a temporary failure that says when to retry', async () => {
    const user = await app.fundedUser('10')
    node.set({ lag: { chance: 1, blocks: 60, splits: true, onlySimulations: true } })
    await assert.rejects(app.call('earn_deposit', { amount_usdc: '10' }, user), {
      code: 'unavailable',
      message: /does not show the latest balance of your account yet; retry in a second/,
      extras: { retry_after: 1 },
    })
    node.set({})
    assert.equal(await app.flows(user), 0)
  })

  test('what a lagging sibling hides is no final shortage, where holdings have just shown it', async () => {
    const user = await app.fundedUser('10')
    await app.fund(baseId, user.evm, 'USDC', '30')
    const shortage = () =>
      app.call('earn_deposit', { amount_usdc: '35' }, user).then(
        () => assert.fail('the node shows it'),
        (fault: unknown) => (fault as { code: string }).code,
      )
    // Of ten seconds.
    const lag = { chance: 1, blocks: 40 }
    node.set({ lag })
    assert.equal(await shortage(), 'insufficient_balance', 'nobody has shown it')
    node.set({})
    await app.call('wallets_holdings', {}, user)
    node.set({ lag })
    assert.equal(await shortage(), 'unavailable')
    const more = app.call('earn_deposit', { amount_usdc: '41' }, user)
    await assert.rejects(more, { code: 'insufficient_balance' }, 'no node has that much')
  })

  test('a receipt of a block that is not on the chain is no proof, and its transaction is not given up', async () => {
    const user = await app.fundedUser()
    node.set({ withholdsSends: true, fakesReceipts: true })
    const pendingDeposit = deposit(user, '100')
    await eventually(
      async () => (node.counts.invented > 3 ? true : undefined),
      'the invented receipt was looked up',
      20_000,
    )
    const { tasks } = await app.main.taskEngine.tasks.list(user.id, { skip: 0, limit: 1 })
    assert.equal(tasks[0]!.status, 'running')
    node.set({})
    await node.release()
    const done = await pendingDeposit
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    assert.equal(await app.flows(user), 1)
    assert.equal(await bookedOf(user), await sharesOf(user))
  })

  for (const message of ['already known', 'nonce too low: next nonce 7, tx nonce 6'])
    test(`a node that accepted the bytes and answers "${message}" is not trusted: the transaction is looked up`, async () => {
      const user = await app.fundedUser()
      node.set({ sendError: { code: -32000, message } })
      const done = await deposit(user, '10')
      assert.equal(done.outcome, 'executed', JSON.stringify(done))
      assert.equal(done.transactions.length, 1)
      assert.equal(await app.flows(user), 1)
    })

  test('a search for arrivals ends at the head of its node: a newer block is not treated as empty', async () => {
    const { chain } = app.main.base
    const user = await app.addUser()
    await app.fund(baseId, user.evm, 'USDC', '7')
    const { number: to } = await chain.head()
    const search = (from: bigint) => chain.incomingTransfers(app.main.usdc, user.evm, { from, to })
    node.set({ lag: { chance: 1, blocks: 12 } })
    const seen = await search(0n)
    assert.deepEqual(seen.transfers, [])
    assert.ok(seen.searchedTo < to, `${seen.searchedTo} of ${to}`)
    await assert.rejects(search(to), { code: 'unavailable' })
    node.set({})
    const { transfers: arrivals, searchedTo } = await search(0n)
    assert.deepEqual([arrivals.map(({ amountUnits }) => amountUnits), searchedTo], [[7_000_000n], to])
  })

  test('a provider with a limit of blocks per search is searched in pieces', async () => {
    const { chain } = app.main.base
    const user = await app.fundedUser('9')
    const { number: to } = await chain.head()
    const from = to > 40n ? to - 40n : 0n
    node.set({ logBlocksMax: 3 })
    const { transfers: arrivals, searchedTo } = await chain.incomingTransfers(app.main.usdc, user.evm, {
      from,
      to,
    })
    assert.ok(node.counts.refusedSearches > 0)
    assert.deepEqual([arrivals.map(({ amountUnits }) => amountUnits), searchedTo], [[9_000_000n], to])
  })

  const depositTogether = async (count: number, failures: NodeFailures) => {
    const users = await Promise.all(Array.from({ length: count }, () => app.fundedUser('50')))
    node.set(failures)
    return executed(await Promise.all(users.map((user) => deposit(user, '5'))))
  }

  test('calls that the limit of a provider refuses inside of a batch are repeated', async () => {
    const { limited } = node.counts
    assert.equal(await depositTogether(12, { limitsEach: 10 }), 12)
    assert.ok(node.counts.limited > limited + 5)
  })

  test('a node that estimates gas without the override of the state makes no deposit fail', async () => {
    const user = await app.fundedUser('50')
    node.set({ estimatesPlainly: true })
    for (const account of ['plain', 'delegated'])
      assert.equal((await deposit(user, '5')).outcome, 'executed', account)
  })

  for (const batchMax of [10, 3, 1])
    test(`a provider that takes ${batchMax} calls in one batch serves 12 deposits at once`, async () => {
      const refused = node.counts.refusedBatches
      assert.equal(await depositTogether(12, { batchMax }), 12)
      assert.ok(node.counts.refusedBatches > refused)
    })
})
