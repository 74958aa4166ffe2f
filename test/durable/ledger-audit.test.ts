/** The audit of the ledger: it finds each planted discrepancy within a cycle, and raises no false alarm under load. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createLedgerAudit, readAuditRecord } from '#durable/ledger/audit.ts'
import { ledger } from '#durable/ledger/ledger.ts'
import { createMaintenance } from '#durable/upkeep/maintenance.ts'
import { silentLog } from '#kernel/log.ts'
import { type AccountRef, externalAccount, type Move } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { type EngineFixture, newUser, openFixture } from './engine-fixture.ts'

const limits = { accountsMax: 1_000, slicesMax: 20, rangesMax: 100, writersMsMax: 5_000 }
const asset = 'test:usd'
const wallet = (owner: string): AccountRef => ({ owner, asset, subAccount: 'wallet' })
const facts = () => ({ taskId: null, now: new Date() })
let moves = 0
const move = (kind: 'transfer' | 'hold', debit: AccountRef, credit: AccountRef, amountUnits: bigint) =>
  ({ move: kind, key: `move ${moves++}`, debit, credit, amountUnits, reason: 'test' }) as Move & {
    key: string
  }

describe('the audit of the ledger', () => {
  let fixture: EngineFixture
  before(async () => {
    fixture = await openFixture()
  })
  after(async () => fixture[Symbol.asyncDispose]())

  const auditDeps = () => {
    const { pool, transaction: run } = fixture.admin
    return { pool, run, log: silentLog, limits }
  }
  /** Runs the audit once, and returns what it knows. */
  const audit = async (settings: Partial<typeof limits> = {}): Promise<string[]> => {
    const job = createLedgerAudit({ ...auditDeps(), limits: { ...limits, ...settings } })
    while (await job.runBatch());
    return discrepancies()
  }
  const discrepancies = async () =>
    (
      await fixture.rows<{ what: string; subject: string }>(
        'select what, subject from ledger_discrepancy order by what, subject',
      )
    ).map(({ what, subject }) => `${what} ${subject}`)
  const position = async () =>
    (await fixture.rows<{ counted_seq: bigint; compared_account: bigint }>('select * from ledger_audit'))[0]!
  const apply = (...list: Move[]) => fixture.admin.transaction((tx) => ledger.apply(tx, list, facts()))
  const idOf = async ({ owner, subAccount }: AccountRef) =>
    (
      await fixture.rows<{ id: bigint }>(
        'select id from account where owner = $1 and asset = $2 and sub_account = $3',
        owner,
        asset,
        subAccount,
      )
    )[0]!.id
  /** Two users of whom one has paid the other and holds a part, all of it counted. */
  const funded = async () => {
    const [from, to] = [wallet(newUser()), wallet(newUser())]
    const payment = move('transfer', from, to, 300n)
    const hold = move('hold', from, externalAccount(asset), 200n)
    await apply(move('transfer', externalAccount(asset), from, 1_000n), payment, hold)
    assert.deepEqual(await audit(), [])
    return { from: await idOf(from), to: await idOf(to), payment: payment.key, hold: hold.key }
  }
  type Funded = Awaited<ReturnType<typeof funded>>
  type Planted = {
    mistake: string
    plant: (ledger: Funded) => string
    undo: (ledger: Funded) => string
    found: (ledger: Funded) => string[]
  }
  const planted: Planted[] = [
    {
      mistake: 'a balance that was changed',
      plant: ({ to }) => `update account set avail = avail + 1 where id = ${to}`,
      undo: ({ to }) => `update account set avail = avail - 1 where id = ${to}`,
      found: ({ to }) => [`balance ${to}`],
    },
    {
      mistake: 'a held part that no hold explains',
      plant: ({ to }) => `update account set avail = avail - 5, held = held + 5 where id = ${to}`,
      undo: ({ to }) => `update account set avail = avail + 5, held = held - 5 where id = ${to}`,
      found: ({ to }) => [`pending holds ${to}`],
    },
    {
      mistake: 'a hold whose amount was changed',
      plant: ({ hold }) => `update transfer set amount = 201 where key = '${hold}'`,
      undo: ({ hold }) => `update transfer set amount = 200 where key = '${hold}'`,
      found: ({ from }) => [`pending holds ${from}`],
    },
    {
      mistake: 'a hold that was deleted',
      plant: ({ hold }) =>
        `create table kept as select * from transfer where key = '${hold}'; delete from transfer where key = '${hold}'`,
      undo: () => 'insert into transfer overriding system value select * from kept; drop table kept',
      found: ({ from }) => [`pending holds ${from}`],
    },
    {
      mistake: 'a settled transfer whose amount was changed',
      plant: ({ payment }) => `update transfer set amount = 301, posted = 301 where key = '${payment}'`,
      undo: ({ payment }) => `update transfer set amount = 300, posted = 300 where key = '${payment}'`,
      found: () => ['transfers block 0'],
    },
    {
      mistake: 'a settled transfer whose reason was changed',
      plant: ({ payment }) => `update transfer set reason = 'another' where key = '${payment}'`,
      undo: ({ payment }) => `update transfer set reason = 'test' where key = '${payment}'`,
      found: () => ['transfers block 0'],
    },
    {
      mistake: 'a settled transfer that was deleted',
      plant: ({ payment }) =>
        `create table kept as select * from transfer where key = '${payment}'; delete from transfer where key = '${payment}'`,
      undo: () => 'insert into transfer overriding system value select * from kept; drop table kept',
      found: () => ['transfers block 0'],
    },
    {
      mistake: 'a settled transfer that pends again',
      plant: ({ payment }) =>
        `create table kept as select * from transfer where key = '${payment}';
         update transfer set state = 'pending', posted = null, settled_at = null, settled_seq = null where key = '${payment}'`,
      undo: ({ payment }) =>
        `update transfer t set state = k.state, posted = k.posted, settled_at = k.settled_at, settled_seq = k.settled_seq
           from kept k where t.key = '${payment}'; drop table kept`,
      found: ({ from }) => [`pending holds ${from}`, 'transfers block 0'],
    },
    {
      mistake: 'a transfer among the counted ones without a change of its accounts',
      plant: ({ from, to }) =>
        `insert into transfer (debit, credit, key, amount, posted, state, reason, at, settled_at, settled_seq)
           values (${from}, ${to}, 'inserted', 7, 7, 'posted', 'test', now(), now(), 1)`,
      undo: () => `delete from transfer where key = 'inserted'`,
      found: () => ['transfers block 0'],
    },
    {
      mistake: 'a count of its own that was changed',
      plant: ({ to }) => `update ledger_checkpoint set units = units + 1 where account_id = ${to}`,
      undo: ({ to }) => `update ledger_checkpoint set units = units - 1 where account_id = ${to}`,
      found: ({ to }) => [`balance ${to}`, `sum of the asset ${asset}`],
    },
    {
      mistake: 'a balance and its count that were changed alike',
      plant: ({ to }) =>
        `update account set avail = avail + 3 where id = ${to};
         update ledger_checkpoint set units = units + 3 where account_id = ${to}`,
      undo: ({ to }) =>
        `update account set avail = avail - 3 where id = ${to};
         update ledger_checkpoint set units = units - 3 where account_id = ${to}`,
      found: () => [`sum of the asset ${asset}`],
    },
  ]
  for (const { mistake, plant, undo, found } of planted)
    test(`${mistake} is found within a cycle, and forgotten once it is corrected`, async () => {
      const accounts = await funded()
      await fixture.admin.pool.query(plant(accounts))
      assert.deepEqual(await audit(), found(accounts))
      await fixture.admin.pool.query(undo(accounts))
      assert.deepEqual(await audit(), [])
    })

  test('a transfer that was inserted, changed or deleted before it is counted is found at its accounts', async () => {
    const { from, to } = await funded()
    const insertSql = `insert into transfer (debit, credit, key, amount, posted, state, reason, at, settled_at, settled_seq)
      values (${from}, ${to}, 'alone', 7, 7, 'posted', 'test', now(), now(), nextval('transfer_settled_seq'))`
    await fixture.rows(insertSql)
    const both = [`balance ${from}`, `balance ${to}`].toSorted()
    assert.deepEqual(await audit(), both)
    await fixture.rows(
      `update account set avail = avail + case id when $1 then -7 else 7 end where id in ($1, $2)`,
      from,
      to,
    )
    assert.deepEqual(await audit(), [])
    const [a, b] = [wallet(newUser()), wallet(newUser())]
    const paid = move('transfer', a, b, 10n)
    await apply(move('transfer', externalAccount(asset), a, 50n), paid)
    await fixture.rows(`update transfer set amount = 11, posted = 11 where key = $1`, paid.key)
    const lost = await Promise.all([a, b].map(idOf))
    assert.deepEqual(await audit(), lost.map((id) => `balance ${id}`).toSorted())
    await fixture.rows(
      'update account set avail = avail + case id when $1 then -1 else 1 end where id = any($2)',
      lost[0],
      lost,
    )
    assert.deepEqual(await audit(), [])
  })

  test('every account is compared in a cycle, however few of them a run compares', async () => {
    const owners = Array.from({ length: 40 }, newUser)
    await apply(...owners.map((owner) => move('transfer', externalAccount(asset), wallet(owner), 5n)))
    assert.deepEqual(await audit(), [])
    const last = await idOf(wallet(owners.at(-1)!))
    await fixture.rows('update account set avail = avail + 1 where id = $1', last)
    const [row] = await fixture.rows<{ n: number }>('select count(*)::integer as n from account')
    let runs = 0
    while ((await audit({ accountsMax: 3, slicesMax: 1 })).length === 0) {
      runs++
      assert.ok(runs <= Math.ceil(row!.n / 3) + 1, 'a whole cycle has not found it')
    }
    assert.ok(runs > 1, 'one run has compared everything')
    await fixture.rows('update account set avail = avail - 1 where id = $1', last)
    assert.deepEqual(
      await audit({ accountsMax: 3, slicesMax: 1 }),
      [],
      'what is known is compared in each run',
    )
    while ((await position()).compared_account > 0n) await audit({ accountsMax: 3, slicesMax: 1 })
    assert.deepEqual(await discrepancies(), [])
  })
  test('the record of the audit counts what it knows, and says when it ended', async () => {
    const { to } = await funded()
    await fixture.rows('update account set avail = avail + 1 where id = $1', to)
    const errors: object[] = []
    const log = { ...silentLog, error: (facts: object) => errors.push(facts) }
    const { pool } = fixture.admin
    const databaseTime = async () =>
      (await fixture.rows<{ at: Date }>('select clock_timestamp() as at'))[0]!.at.getTime()
    const begunMs = await databaseTime()
    const maintenance = createMaintenance({ pool, instanceId: newUser(), log, everyMs: 1 })
    await maintenance.run([createLedgerAudit({ ...auditDeps(), log })])
    const record = await readAuditRecord({ pool })
    assert.equal(record?.disagreements, 1)
    const endedMs = record.endedAt.getTime()
    assert.ok(endedMs >= begunMs && endedMs <= (await databaseTime()), String(record.endedAt))
    assert.match(
      JSON.stringify(errors, (_, value) => (typeof value === 'bigint' ? `${value}` : value)),
      /balance/,
    )
    await fixture.rows('update account set avail = avail - 1 where id = $1', to)
    assert.deepEqual(await audit(), [])
  })

  test('what a transaction in flight has settled is counted once it has ended, and not passed over', async () => {
    assert.deepEqual(await audit(), [])
    const { counted_seq: before } = await position()
    const release = Promise.withResolvers<void>()
    const settled = Promise.withResolvers<void>()
    const inFlight = fixture.admin.transaction(async (tx) => {
      await ledger.apply(tx, [move('transfer', externalAccount(asset), wallet(newUser()), 1n)], facts())
      settled.resolve()
      await release.promise
    })
    await settled.promise
    const other = { owner: newUser(), asset: 'test:gbp', subAccount: 'wallet' }
    await apply(move('transfer', externalAccount(other.asset), other, 9n))
    const found = await audit({ writersMsMax: 100 })
    const { counted_seq: meanwhile } = await position()
    release.resolve()
    await inFlight
    assert.deepEqual([found, meanwhile], [[], before], 'nothing is counted behind the transaction')
    assert.deepEqual(await audit(), [])
    assert.equal((await position()).counted_seq, before + 2n)
  })

  test('under concurrent load with commits in flight no audit raises an alarm, not even two at a time', async () => {
    const owners = Array.from({ length: 12 }, newUser)
    await apply(...owners.map((owner) => move('transfer', externalAccount(asset), wallet(owner), 1_000_000n)))
    let stopped = false
    let committed = 0
    let seed = 1
    const random = (below: number) => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % below
    }
    const pick = () => wallet(owners[random(owners.length)]!)
    const trader = async () => {
      const holds: string[] = []
      while (!stopped) {
        const what = random(4)
        await fixture.admin
          .transaction(async (tx) => {
            const hold = move('hold', pick(), externalAccount(asset), BigInt(1 + random(9)))
            if (what === 0) await ledger.apply(tx, [hold], facts())
            else if (what === 1 && holds.length > 0)
              await ledger.apply(
                tx,
                [{ move: random(2) ? 'post' : 'void', key: holds.shift()! } as Move],
                facts(),
              )
            else await ledger.apply(tx, [move('transfer', pick(), pick(), BigInt(1 + random(9)))], facts())
            // The commit is in flight for a while.
            for (let wait = random(4); wait > 0; wait--) await query(tx, 'select 1')
            if (what === 0) holds.push(hold.key)
            if (random(20) === 0) throw new Error('rolled back')
          })
          .then(
            () => committed++,
            () => undefined,
          )
      }
    }
    const traders = Array.from({ length: 5 }, trader)
    const counts: number[] = []
    const auditor = async () => {
      for (let round = 0; round < 25; round++) {
        const found = await audit({ accountsMax: 5 })
        counts.push(found.length)
        assert.deepEqual(found, [], `round ${round}`)
      }
    }
    await Promise.all([auditor(), auditor()]).finally(() => {
      stopped = true
    })
    await Promise.all(traders)
    assert.equal(counts.length, 50)
    assert.ok(committed > 100, `${committed} commits`)
    assert.deepEqual(await audit(), [])
    assert.equal(await ledgerDrift(fixture.admin.pool), 0)
    const [last] = await fixture.rows<{ n: bigint }>('select max(settled_seq) as n from transfer')
    assert.ok((await position()).counted_seq >= last!.n, 'all of it was counted')
  })

  test('a transfer between two assets is found when it is counted', async () => {
    const { from } = await funded()
    const other = { owner: newUser(), asset: 'test:eur', subAccount: 'wallet' }
    await apply(move('transfer', externalAccount(other.asset), other, 5n))
    const [mixed] = await fixture.rows<{ id: bigint }>(
      `with to_account as (update account set avail = avail + 1 where owner = $1 returning id),
         from_account as (update account set avail = avail - 1 where id = $2)
       insert into transfer (debit, credit, key, amount, posted, state, reason, at, settled_at, settled_seq)
         select $2, id, 'mixed', 1, 1, 'posted', 'test', now(), now(), nextval('transfer_settled_seq') from to_account
         returning id`,
      other.owner,
      from,
    )
    assert.deepEqual(await audit(), [
      `assets of the transfer ${mixed!.id}`,
      `sum of the asset ${other.asset}`,
      `sum of the asset ${asset}`,
    ])
  })
})
