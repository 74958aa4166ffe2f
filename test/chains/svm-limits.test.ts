/** What the sponsor pays on Solana is bounded: by the user's day, by its balance, and by what it signs. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { query } from '#store/query.ts'
import { transferLamports } from '#upstreams/solana/instruction-builder.ts'
import { createSvmApp, type SvmApp } from './svm-app.ts'
import { recipient, solanaId } from './svm-send.ts'

const one = { symbol: 'USDC', units: '1000000' }

describe('the sponsor on Solana', () => {
  let app: SvmApp
  before(async () => {
    app = await createSvmApp({ env: { SOLANA_SPONSOR_USER_DAY: '0.005' } })
    // The rent of the recipient's account is that of the first who sends there.
    await app.send(await app.fundedUser('USDC'), one)
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
  })
  /** Lamports of all sponsor accounts, read from the chain. */
  const sponsored = async () => {
    const { accounts } = await app.chain.accounts(app.port.sponsor.signers)
    return accounts.reduce((sum, account) => sum + (account?.lamports ?? 0n), 0n)
  }
  test('the rent of token accounts counts, and a used budget refuses that user and no other', async () => {
    const user = await app.fundedUser('USDC')
    const outcomes: (string | null)[] = []
    for (const opens of ['BONK', 'JUP']) outcomes.push((await app.send(user, { ...one, opens })).outcome)
    assert.deepEqual(outcomes, ['executed', 'executed'])
    const refused = { ...one, opens: 'PYUSD' }
    await assert.rejects(
      app.send(user, refused),
      (fault: { code: string; extras: Record<string, unknown> }) => {
        assert.equal(fault.code, 'rate_limited')
        assert.equal(fault.extras.budget, 'sponsor_gas_per_day')
        assert.equal(fault.extras.limit, '0.005')
        return true
      },
    )
    assert.equal((await app.send(user, { ...refused, full_exit: true })).outcome, 'executed')
    const other = await app.fundedUser('USDC')
    assert.equal((await app.send(other, { ...one, opens: 'PYUSD' })).outcome, 'executed')
  })

  test('an account that is opened and closed again and again earns its owner nothing, and costs the sponsor its fees', async () => {
    const user = await app.fundedUser('USDC')
    const day = 5_000_000n
    const rent = 2_039_280n
    const feesMax = 100_000n
    const before = await sponsored()
    let sent = 0
    const outcomes: string[] = []
    while (outcomes.at(-1) !== 'rate_limited' && outcomes.length < 8) {
      const opened = outcomes.length % 2 === 0
      const turn = opened ? { ...one, opens: 'BONK' } : { ...one, closes: 'BONK' }
      const outcome = await app.send(user, turn).then(
        (done) => String(done.outcome),
        (fault: { code: string }) => fault.code,
      )
      outcomes.push(outcome)
      if (outcome === 'executed') sent += 1
    }
    // The rent of each opening counts for the day, although each close returned it.
    assert.deepEqual(outcomes, ['executed', 'executed', 'executed', 'executed', 'rate_limited'])
    assert.equal(await app.unitsOf(user.svm, 'SOL'), 0n)
    const cost = before - (await sponsored())
    assert.ok(cost > 0n && cost <= BigInt(sent) * feesMax, `${cost} lamports`)

    // As many openings as the budget of a day allows, none of them closed: the rent stays below it.
    const hoarder = await app.fundedUser('USDC')
    const start = await sponsored()
    const refusals: string[] = []
    for (const opens of ['BONK', 'JUP', 'PYUSD', 'PYUSD'])
      await app.send(hoarder, { ...one, opens }).catch((fault: { code: string }) => refusals.push(fault.code))
    assert.deepEqual(refusals, ['rate_limited', 'rate_limited'])
    const paid = start - (await sponsored())
    assert.ok(paid >= 2n * rent && paid <= day, `${paid} lamports`)
  })

  test('sponsors that are paused, or have too little, pay for nothing, and say so', async () => {
    const user = await app.fundedUser('USDC')
    const paused = { code: 'unavailable', extras: { reason: 'sponsor_paused' } }
    const isPaused = (fault: typeof paused) => {
      assert.deepEqual([fault.code, fault.extras.reason], [paused.code, paused.extras.reason])
      return true
    }
    const { signers } = app.port.sponsor
    for (const signer of signers)
      await query(
        app.database.pool,
        `insert into paused_sponsor (chain, signer, since, set_by, reason) values ($1, $2, now(), 'test', 'test')`,
        [solanaId, signer],
      )
    await using instance = await app.instance()
    await assert.rejects(app.send(user, one, {}, instance), isPaused)
    await query(app.database.pool, 'delete from paused_sponsor', [])
    await using poor = await createSvmApp({
      env: { SOLANA_SPONSOR_KEYS: `0x${'0123456789abcdef'.repeat(4)}` },
    })
    await assert.rejects(poor.send(await poor.fundedUser('USDC'), one), isPaused)
  })

  test('a plan that drains the sponsor is refused before a task exists', async () => {
    const user = await app.fundedUser('USDC')
    const [signer] = app.port.sponsor.signers
    await using hostile = await app.instance(
      {},
      {
        change: (plan) => ({
          ...plan,
          instructions: [...plan.instructions, transferLamports(signer!, plan.account, 1_000_000n)],
        }),
      },
    )
    await assert.rejects(app.send(user, one, {}, hostile), { code: 'policy_denied' })
    await assert.rejects(app.send(user, one, {}, hostile), { code: 'policy_denied' })
  })

  test('custody refuses what the intent does not list, and nothing is sent', async () => {
    // An honest instance beside it could take the task over, and would execute it.
    await using hostile = await createSvmApp({
      send: {
        change: (plan) => ({ ...plan, spends: plan.spends.map((spend) => ({ ...spend, to: plan.account })) }),
        signsOnAccept: false,
      },
    })
    const user = await hostile.fundedUser('USDC')
    const before = await hostile.unitsOf(user.svm, 'USDC')
    const done = await hostile.send(user, one)
    assert.equal(done.outcome, 'not_executed', JSON.stringify(done))
    assert.equal(done.error?.code, 'policy_denied')
    assert.equal((await hostile.attemptsOf(user.id)).length, 0)
    assert.equal(await hostile.unitsOf(user.svm, 'USDC'), before)
    assert.ok((await hostile.unitsOf(recipient, 'USDC')) >= 0n)
  })
})
