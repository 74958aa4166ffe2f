import { venueChainId } from '#compose/settings.ts'
import { appendEvents } from '#durable/events/append-events.ts'
import { userTopic } from '#durable/events/notifier.ts'
import { findAccount, markFrozen } from '#engines/venue/records/account-store.ts'
import * as policy from '#features/policy/store.ts'
import { operatorText } from '#kernel/task/operator-text.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { query } from '#store/query.ts'
import { UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import type { Session } from './session.ts'
import { userOf } from './users.ts'

const listAccounts: AdminCommand['run'] = async (session) => {
  const { pool } = session.database
  await session.record(pool, { command: 'accounts list' })
  const text = `select x.section, x.user_id, u.agent_id, x.account, x.state, x.since, x.reason
    from (select 'venue' as section, user_id, account, state, frozen_since as since, reason from venue_account
        where state in ('frozen', 'unfreezing')
      union all select 'earn', user_id, vault, state, frozen_since, reason from earn_account
        where state = 'frozen') x
    join app_user u on u.id = x.user_id order by x.since`
  session.print(await query(pool, text))
}

const listChanges: AdminCommand['run'] = async (session, args) => {
  const { pool } = session.database
  const { id } = await userOf(pool, args.positional('user'))
  await session.record(pool, { command: 'accounts changes', subject: id })
  const text = `select balance_key, amount, kind, reason, to_timestamp(at_ms / 1000.0) as at from venue_ledger_entry
    where user_id = $1 and kind in ('adjustment', 'unfreeze') order by at_ms desc limit 1000`
  session.print(await query(pool, text, [id]))
}

async function addFlagEvent(
  tx: Tx,
  session: Session,
  account: { user_id: string; account: string },
  data: JsonObject,
) {
  const event = { type: 'security.flagged', subject: { kind: 'account', id: account.account }, data }
  await appendEvents(tx, account.user_id, [event], session.clock.now())
}

const freeze: AdminCommand['run'] = async (session, args) => {
  const { database, clock } = session
  const { id } = await userOf(database.pool, args.positional('user'))
  await database.transaction(async (tx) => {
    const account = await findAccount(tx, id, { lock: true })
    if (!account) throw new UsageError(`User ${id} has no venue account.`)
    const now = clock.now()
    const reason = `operator: ${session.reason}`
    if ((await markFrozen(tx, account, reason, now)).length === 0)
      throw new UsageError(`The account of user ${id} is already frozen.`)
    const switchId = { scope: 'venue', userId: id, chainId: venueChainId } as const
    await policy.setSwitch(tx, switchId, { since: now, setBy: operatorText(session), reason })
    await session.record(tx, {
      command: 'accounts freeze',
      subject: id,
      details: { account: account.account },
    })
    const data = { venue: account.venue, state: 'frozen', code: 'operator', reason, since: now.toISOString() }
    await addFlagEvent(tx, session, account, data)
  })
  await session.notify([userTopic(id)])
  session.printLine(`The venue account of user ${id} is frozen: it opens nothing, exits go on`)
}

/**
 * Unfreezes a venue account. Its next comparison adopts the differences into the record, with the operator's reason.
 */
const unfreeze: AdminCommand['run'] = async (session, args) => {
  const { database, clock } = session
  const { id } = await userOf(database.pool, args.positional('user'))
  await database.transaction(async (tx) => {
    const rows = await query(
      tx,
      `update venue_account set state = 'unfreezing', unfrozen_by = $2, next_at = $3
       where user_id = $1 and state = 'frozen' returning account`,
      [id, operatorText(session), clock.now()],
    )
    if (rows.length === 0) throw new UsageError(`User ${id} has no frozen venue account.`)
    await session.record(tx, { command: 'accounts unfreeze', subject: id, details: rows[0]! })
  })
  session.printLine(`The venue account of user ${id} will be unfrozen by the next comparison`)
}

export const accountCommands: readonly AdminCommand[] = [
  {
    name: 'accounts list',
    changes: false,
    summary: 'list frozen accounts, at the venue and in the vault, each with its reason',
    run: listAccounts,
  },
  {
    name: 'accounts changes',
    positionals: ['<user>'],
    changes: false,
    summary: 'list the adjustments in the record of an account, with their reasons',
    run: listChanges,
  },
  {
    name: 'accounts freeze',
    positionals: ['<user>'],
    summary: 'freeze the venue account of this user; exits go on',
    run: freeze,
  },
  {
    name: 'accounts unfreeze',
    positionals: ['<user>'],
    summary: 'adopt unexplained differences into the record, and allow trading again',
    run: unfreeze,
  },
]
