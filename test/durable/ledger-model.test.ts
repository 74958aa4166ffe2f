/**
 * The ledger's functions against a model of them, in random sequences of operations. `npm test` runs as many as fit into
 * 15 seconds; `PROOF=nightly PORTICO_TEST_LEDGER_OPERATIONS=100000 npm test -- ledger-model` runs that many operations.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { createLedgerAudit } from '#durable/ledger/audit.ts'
import { movesToJson } from '#durable/ledger/ledger.ts'
import { shardOf } from '#kernel/id.ts'
import { silentLog } from '#kernel/log.ts'
import { type AccountRef, externalAccount, type Move } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { type EngineFixture, newUser, openFixture } from './engine-fixture.ts'
import {
  acceptanceToModel,
  applyToModel,
  balanceOf,
  emptyModel,
  external,
  type Model,
  type ModelAcceptance,
  type Movement,
  type Verdict,
} from './ledger-model.ts'

const operationsWanted = Number(process.env.PORTICO_TEST_LEDGER_OPERATIONS ?? 0)
const limitMs = 15_000
const keysMax = 12
const usersMax = 3

let fixture: EngineFixture
before(async () => {
  fixture = await openFixture()
})
after(async () => fixture[Symbol.asyncDispose]())

type Operation =
  | { does: 'apply'; movements: Movement[] }
  | { does: 'acceptance'; acceptances: (Omit<ModelAcceptance, 'version'> & { isStale: boolean })[] }

const units = (max: bigint) => fc.bigInt({ min: 1n, max })
const userAccount = fc
  .tuple(fc.nat(usersMax - 1), fc.constantFrom('wallet', 'vault'))
  .map(([user, subAccount]) => `${user} ${subAccount}`)
const account = fc.oneof(
  { weight: 4, arbitrary: userAccount },
  { weight: 1, arbitrary: fc.constant(external) },
)
// Few keys, so that most are used again: for the same movement, for another one, and after the end of a hold.
const key = fc.nat(keysMax - 1).map((n) => `key ${n}`)
const movement: fc.Arbitrary<Movement> = fc.oneof(
  fc
    .record({
      move: fc.constantFrom('transfer' as const, 'hold' as const),
      key,
      debit: account,
      credit: account,
      amountUnits: units(60n),
    })
    .filter(({ debit, credit }) => debit !== credit),
  fc.record({ move: fc.constant('post' as const), key }),
  fc.record({ move: fc.constant('post' as const), key, amountUnits: fc.bigInt({ min: 0n, max: 70n }) }),
  fc.record({ move: fc.constant('void' as const), key }),
)
const accepted = fc.record({
  account: userAccount,
  key,
  totalUnits: fc.bigInt({ min: 0n, max: 200n }),
  amountUnits: units(120n),
  isStale: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
})
const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({
    does: fc.constant('apply' as const),
    movements: fc.array(movement, { minLength: 1, maxLength: 3 }),
  }),
  // As one statement takes them: one acceptance per user.
  fc.record({
    does: fc.constant('acceptance' as const),
    acceptances: fc.uniqueArray(accepted, {
      minLength: 1,
      maxLength: usersMax,
      selector: (each) => each.account.split(' ')[0],
    }),
  }),
)

const verdicts: Record<string, Verdict> = { PT001: 'short', PT003: 'refused' }
const verdictOf = (run: Promise<unknown>): Promise<Verdict> =>
  run.then(
    () => 'accepted' as const,
    (error: { code?: string }) => {
      const verdict = verdicts[error.code ?? '']
      if (!verdict) throw error
      return verdict
    },
  )

/** The functions of the database, under names of the model: fresh users and a fresh asset for each sequence. */
function openLedger(run: number) {
  const { pool } = fixture.admin
  const asset = `model:${run}`
  const users = Array.from({ length: usersMax }, newUser)
  const shard = shardOf(users[0]!)
  const refOf = (name: string): AccountRef => {
    const [user, subAccount] = name.split(' ')
    return name === external
      ? externalAccount(asset)
      : { owner: users[Number(user)]!, asset, subAccount: subAccount! }
  }
  const token = { symbol: 'M', decimals: 0, address: asset }
  const moveOf = (each: Movement): Move => {
    const own = { ...each, key: `${asset} ${each.key}` }
    if (!('debit' in own)) return own
    const sides = { debit: refOf(own.debit), credit: refOf(own.credit), reason: 'model' }
    const { key: ownKey, amountUnits } = own
    return own.move === 'hold'
      ? { move: 'hold', key: ownKey, amountUnits, ...sides, token }
      : { move: 'transfer', key: ownKey, amountUnits, ...sides }
  }
  const applySql = 'select ledger_apply($1::jsonb, null, $2, now())'
  return {
    apply: (movements: readonly Movement[]) =>
      verdictOf(query(pool, applySql, [JSON.stringify(movesToJson(movements.map(moveOf))), shard])),
    /** One statement for all of them, as arrivals are batched; the verdict of each. */
    async acceptance(acceptances: readonly ModelAcceptance[]): Promise<Verdict[]> {
      const at = new Date()
      const json = acceptances.map(({ account: name, key: ownKey, totalUnits, version, amountUnits }, n) => {
        const { owner, subAccount } = refOf(name)
        const task = { id: newUser(), shard, user_id: owner, kind: 'model', kind_version: 1, step: 'only' }
        const times = { run_at: at, deadline: at, created_at: at, updated_at: at }
        const state = { status: 'pending', state: 'accepted', input: {}, data: {}, events: [], priority: 1 }
        const spend = {
          asset,
          sub_account: subAccount,
          amount: String(amountUnits),
          hold_key: `${asset} ${ownKey}`,
        }
        const seen = { seen_total: String(totalUnits), seen_version: String(version), reason: 'model' }
        return { n, is_exit: true, ...task, ...times, ...state, ...spend, ...seen }
      })
      const rows = await query<{ n: number; verdict: Verdict }>(
        pool,
        'select * from task_accept($1::jsonb, null)',
        [JSON.stringify(json)],
      )
      return acceptances.map((_, n) => rows.find((row) => row.n === n)!.verdict)
    },
    async balances(): Promise<Map<string, { avail: bigint; held: bigint; version: bigint }>> {
      const rows = await fixture.rows<{
        owner: string
        sub_account: string
        avail: string
        held: string
        version: bigint
      }>('select owner, sub_account, avail, held, version from account where asset = $1', asset)
      const nameOf = ({ owner, sub_account }: { owner: string; sub_account: string }) =>
        users.includes(owner) ? `${users.indexOf(owner)} ${sub_account}` : external
      return new Map(
        rows.map((row) => [
          nameOf(row),
          { avail: BigInt(row.avail), held: BigInt(row.held), version: row.version },
        ]),
      )
    },
    async transfers() {
      const rows = await fixture.rows<{ key: string; amount: string; posted: string | null }>(
        `select key, amount, posted from transfer where key like $1 order by key`,
        `${asset} key%`,
      )
      return rows.map((row) => `${row.key.slice(asset.length + 1)} ${row.amount} ${row.posted}`)
    },
  }
}
type LedgerUnderTest = ReturnType<typeof openLedger>

/** Equal balances; a version rises exactly where the model's does, by however much. */
async function compare(model: Model, earlier: Model['accounts'], ledger: LedgerUnderTest): Promise<void> {
  const found = await ledger.balances()
  for (const [name, balance] of found) {
    const expected = balanceOf(model, name)
    assert.deepEqual([name, balance.avail, balance.held], [name, expected.avail, expected.held])
    if (name === external) continue
    const before = earlier.get(name)?.version ?? 0n
    assert.equal(balance.version > before, expected.version > before, `version of ${name}`)
    assert.ok(balance.version >= before && balance.avail >= 0n, `${name} ${balance.version} ${balance.avail}`)
    // From here on the model counts as the database does.
    model.accounts.set(name, { ...expected, version: balance.version })
  }
  let sum = 0n
  for (const [name, { avail, held }] of model.accounts) {
    sum += avail + held
    assert.ok(found.has(name) || (avail === 0n && held === 0n), `${name} is missing`)
  }
  assert.equal(sum, 0n)
}

async function runOperation(each: Operation, model: Model, ledger: LedgerUnderTest): Promise<Verdict[]> {
  const earlier = new Map(model.accounts)
  if (each.does === 'apply') {
    const verdict = await ledger.apply(each.movements)
    assert.equal(verdict, applyToModel(model, each.movements), 'verdict')
    await compare(model, earlier, ledger)
    return [verdict]
  }
  // A key names one task: those of the others are taken.
  const known = new Set(model.transfers.keys())
  const acceptances = each.acceptances
    .filter(({ key: own }) => !known.has(own) && known.add(own))
    .map(({ isStale, ...rest }) => {
      const { version } = balanceOf(model, rest.account)
      return { ...rest, version: isStale ? version + 1n : version }
    })
  const got = await ledger.acceptance(acceptances)
  assert.deepEqual(
    got,
    acceptances.map((acceptance) => acceptanceToModel(model, acceptance)),
    'verdicts',
  )
  await compare(model, earlier, ledger)
  return got
}

test('every sequence of movements, holds, ends and acceptances leaves the balances of the model', async (t) => {
  let sequences = 0
  let operations = 0
  const seen = new Map<Verdict, number>()
  const property = fc.asyncProperty(
    fc.array(operation, { minLength: 1, maxLength: 40, size: 'max' }),
    async (list) => {
      const ledger = openLedger(sequences++)
      const model = emptyModel()
      for (const each of list) {
        for (const verdict of await runOperation(each, model, ledger))
          seen.set(verdict, (seen.get(verdict) ?? 0) + 1)
        operations++
      }
      assert.deepEqual(
        await ledger.transfers(),
        [...model.transfers].map(([name, { amount, posted }]) => `${name} ${amount} ${posted}`).toSorted(),
      )
    },
  )
  const timed = { numRuns: 100_000, interruptAfterTimeLimit: limitMs }
  if (operationsWanted === 0) await fc.assert(property, timed)
  else while (operations < operationsWanted) await fc.assert(property, { numRuns: 100 })
  t.diagnostic(
    `${sequences} sequences, ${operations} operations, ${JSON.stringify(Object.fromEntries(seen))}`,
  )
  for (const verdict of ['accepted', 'short', 'stale', 'refused'] as const)
    assert.ok((seen.get(verdict) ?? 0) > 10, `only ${seen.get(verdict)} ${verdict}`)
  assert.equal(await ledgerDrift(fixture.admin.pool), 0)
  const { pool, transaction: run } = fixture.admin
  const audit = createLedgerAudit({ pool, run, log: silentLog })
  while (await audit.runBatch());
  assert.deepEqual(await fixture.rows('select * from ledger_discrepancy'), [])
})
