/** A user without SOL acts on Solana: the user signs, the sponsor pays, and the chain's own record is the outcome. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { sealedWallet } from '#engines/custody/wallet-store.ts'
import { query } from '#store/query.ts'
import { createTokenAccount, transferTokens } from '#upstreams/solana/instruction-builder.ts'
import { compileMessage, joinTransaction } from '#upstreams/solana/message.ts'
import { tokenProgram } from '#upstreams/solana/program-ids.ts'
import { svmCrypto } from '#upstreams/solana/sign.ts'
import { eventually } from '../harness/gateway.ts'
import type { TestUser } from '../harness/instance.ts'
import { createSvmApp, type SvmApp } from './svm-app.ts'
import { recipient, solanaId } from './svm-send.ts'

const sends = ['sendTransaction']

describe('sponsored transactions on Solana', () => {
  let app: SvmApp
  before(async () => {
    app = await createSvmApp()
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
  })
  beforeEach(() => app.heal())

  const usdc = { symbol: 'USDC', units: '25000000' }
  const heldBy = (userId: string) =>
    query<{ held: string }>(app.database.pool, 'select held from account where owner = $1', [userId])
  const chargeOf = async (taskId: string) => {
    const [row] = await query<{ wei: string; is_final: boolean }>(
      app.database.pool,
      'select wei, is_final from sponsor_charge where task_id = $1',
      [taskId],
    )
    return row
  }
  const stateOf = (user: TestUser, state: string, msMax = 15_000) =>
    eventually(
      async () => {
        const { tasks } = await app.main.taskEngine.tasks.list(user.id, { skip: 0, limit: 1 })
        return tasks[0]?.state === state ? tasks[0] : undefined
      },
      `state ${state}`,
      msMax,
    )

  test('a user without SOL sends tokens, and the chain shows exactly that', async () => {
    const user = await app.fundedUser('USDC')
    const before = await app.unitsOf(recipient, 'USDC')
    const done = await app.send(user, usdc)
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.deepEqual(
      done.balance_changes.map(({ symbol, amount }) => [symbol, amount]),
      [['USDC', '-25000000']],
    )
    assert.equal(await app.unitsOf(recipient, 'USDC'), before + 25_000_000n)
    assert.equal(await app.unitsOf(user.svm, 'USDC'), 75_000_000n)
    assert.equal(await app.unitsOf(user.svm, 'SOL'), 0n)
    assert.deepEqual(
      done.transactions.map(({ status, tx_hash }) => [status, tx_hash]),
      [['finalized', done.result.tx_hash]],
    )
    const charge = await chargeOf(done.task_id)
    assert.deepEqual([charge?.wei, charge?.is_final], [done.result.sponsor_lamports, true])
  })

  test('a transfer whose step signs ends like one that is signed with its acceptance', async () => {
    const user = await app.fundedUser('USDC')
    await using instance = await app.instance({}, { signsOnAccept: false })
    for (const at of [instance, app.main]) {
      const done = await app.send(user, usdc, {}, at)
      assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    }
    assert.equal(await app.unitsOf(user.svm, 'USDC'), 50_000_000n)
  })

  test('all of the SOL of a user can be sent, because the sponsor pays the fee', async () => {
    const user = await app.fundedUser('SOL', '2')
    const done = await app.send(user, { symbol: 'SOL', units: '2000000000' })
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.equal(await app.unitsOf(user.svm, 'SOL'), 0n)
  })

  test('tokens of the newer token program are sent, and the rent of a new account is paid and counted', async () => {
    const user = await app.fundedUser('PYUSD')
    const done = await app.send(user, { symbol: 'PYUSD', units: '1000000', opens: 'BONK' })
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.ok(BigInt(done.result.sponsor_lamports) > 2_000_000n, done.result.sponsor_lamports)
    assert.equal((await chargeOf(done.task_id))?.wei, done.result.sponsor_lamports)
  })

  test('equal orders in one moment are as many transactions', async () => {
    const user = await app.fundedUser('USDC')
    const all = await Promise.all([1, 2, 3, 4].map(() => app.send(user, usdc)))
    assert.deepEqual(
      all.map(({ outcome }) => outcome),
      ['executed', 'executed', 'executed', 'executed'],
    )
    assert.equal(new Set(all.map(({ result }) => result.tx_hash)).size, 4)
    assert.equal(await app.unitsOf(user.svm, 'USDC'), 0n)
  })

  test('more than the wallet has is refused before a task exists', async () => {
    const user = await app.fundedUser('USDC')
    await assert.rejects(app.send(user, { symbol: 'USDC', units: '100000001' }), {
      code: 'insufficient_balance',
    })
    const { svm: to } = await app.addUser()
    await assert.rejects(app.send(user, { ...usdc, to }), { code: 'policy_denied' })
  })

  test('a reply that is lost after the send neither loses nor doubles the transfer', async () => {
    const user = await app.fundedUser('USDC')
    await app.fault({ drop_reply: true, methods: sends, count: 2 })
    const done = await app.send(user, usdc)
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.equal((await app.attemptsOf(user.id)).length, 1)
    assert.equal(await app.unitsOf(user.svm, 'USDC'), 75_000_000n)
  })

  test('a node that takes nothing gets the same bytes again', async () => {
    const user = await app.fundedUser('USDC')
    await app.fault({ status: 503, methods: sends, count: 2 })
    const done = await app.send(user, usdc)
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.equal((await app.attemptsOf(user.id)).length, 1)
  })

  test('while the chain is silent the outcome is unknown, for an operator after an hour, and afterwards it is the truth', async () => {
    const user = await app.fundedUser('USDC')
    await app.fault({ status: 503, methods: sends })
    const pending = app.send(user, usdc)
    await eventually(
      async () => ((await app.attemptsOf(user.id)).length > 0 ? true : undefined),
      'the signature',
    )
    await app.fault({ status: 502 })
    const task = await stateOf(user, 'reconciling')
    assert.equal(task.outcome, 'unknown')
    const rows = (text: string) => query<{ minutes: number }>(app.database.pool, text, [task.id])
    const [stored] = await rows(
      'select round(extract(epoch from valid_until - at) / 60)::integer as minutes from effect where task_id = $1',
    )
    assert.equal(stored?.minutes, 10, 'an operator can call it not executed only after that')
    await rows(`update effect set at = at - interval '61 minutes' where task_id = $1 returning 0 as minutes`)
    await stateOf(user, 'review', 30_000)
    await app.heal()
    await rows('update task_queue set run_at = now() where task_id = $1 returning 0 as minutes')
    const done = await pending
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.equal(await app.unitsOf(user.svm, 'USDC'), 75_000_000n)
  })

  test('a transaction that no block included is signed again, only once it can never land', async () => {
    const user = await app.fundedUser('USDC')
    await app.fault({ status: 503, methods: sends })
    const pending = app.send(user, usdc, { timeoutMs: 60_000 })
    const [first] = await eventually(async () => {
      const found = await app.attemptsOf(user.id)
      return found.length > 0 ? found : undefined
    }, 'the signature')
    await app.advance(60)
    // The last valid block has passed, and is not yet final with its margin.
    assert.equal((await app.attemptsOf(user.id)).length, 1)
    await app.advance(40)
    await eventually(
      async () => ((await app.attemptsOf(user.id))[0]?.effect_status === 'dropped' ? true : undefined),
      'the end of the first signature',
      20_000,
    )
    await app.heal()
    const done = await pending
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    const attempts = await app.attemptsOf(user.id)
    assert.ok(attempts.length >= 2)
    assert.deepEqual(
      attempts.map(({ effect_status }) => effect_status),
      [...attempts.slice(1).map(() => 'dropped'), 'confirmed'],
    )
    await app.chain.send(first!.raw)
    assert.equal(await app.unitsOf(user.svm, 'USDC'), 75_000_000n)
    const [proof] = await query<{ proof: { absent_at_slots: string[] } }>(
      app.database.pool,
      'select proof from effect where external_id = $1',
      [first!.external_id],
    )
    assert.equal(proof?.proof.absent_at_slots.length, 2)
    assert.deepEqual(
      done.transactions.map(({ status }) => status),
      [...attempts.slice(1).map(() => 'dropped'), 'finalized'],
    )
  })

  /** As if the key of the user were used elsewhere. */
  const takeTokens = async (user: TestUser, units: bigint) => {
    const { address: mint } = app.chain.row.tokens[0]!
    const usdcMint = { mint, decimals: 6, tokenProgram }
    const { blockhash } = await app.chain.latestBlockhash()
    const message = compileMessage({
      feePayer: user.svm,
      instructions: [
        createTokenAccount(usdcMint, recipient, user.svm),
        transferTokens(usdcMint, user.svm, recipient, units),
      ],
      tables: [],
      staticAddresses: [],
      blockhash,
    })
    const sealed = await sealedWallet(app.database.pool, user.id, 'svm')
    const signature = await app.main.custody.keystore.withKey(sealed!, (secret) =>
      svmCrypto.signBytes(secret, message),
    )
    await app.chain.send(Buffer.from(joinTransaction([signature], message)).toString('base64'))
  }

  test('a transaction that fails in its block moved nothing, and its fee counts', async () => {
    const user = await app.fundedUser('USDC')
    await app.control('POST', '/faucet/fund', {
      chain_id: solanaId,
      address: user.svm,
      token: 'native',
      amount: '1',
    })
    await app.fault({ status: 503, methods: sends, count: 4 })
    const pending = app.send(user, { symbol: 'USDC', units: '100000000' })
    await stateOf(user, 'reconciling')
    await app.heal()
    await takeTokens(user, 60_000_000n)
    const done = await pending
    assert.equal(done.outcome, 'not_executed', JSON.stringify(done))
    assert.equal(done.error?.code, 'tx_failed')
    assert.equal(done.transactions.at(-1)?.status, 'failed')
    assert.deepEqual(
      (await heldBy(user.id)).map(({ held }) => held),
      ['0'],
    )
    const charge = await chargeOf(done.task_id)
    assert.ok(charge?.is_final && BigInt(charge.wei) >= 10_000n, JSON.stringify(charge))
  })

  test('a transfer that landed while no instance ran is found in the history and not signed again', async () => {
    const user = await app.fundedUser('USDC')
    await app.fault({ drop_reply: true, methods: sends, count: 1 })
    const first = await app.instance()
    await app.main.taskEngine[Symbol.asyncDispose]()
    await app.fault({ status: 503, methods: ['getSignatureStatuses', 'getTransaction'] })
    const pending = app.send(user, usdc, { wait: false }, first)
    const { task_id } = await pending
    await eventually(
      async () => ((await app.unitsOf(user.svm, 'USDC')) < 100_000_000n ? true : undefined),
      'the transfer',
    )
    await first[Symbol.asyncDispose]()
    await app.advance(120)
    await app.heal()
    await using second = await app.instance()
    const done = await eventually(
      async () => {
        const task = await second.taskEngine.tasks.find(user.id, task_id)
        return task.completed_at ? task : undefined
      },
      'the end of the task',
      20_000,
    )
    assert.equal(done.outcome, 'executed', JSON.stringify(done.error))
    assert.equal((await app.attemptsOf(user.id)).length, 1)
  })
})
