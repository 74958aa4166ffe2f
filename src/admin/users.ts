import { decodeBase64, isUsableKey, publicKeyBytes } from '#features/auth/ed25519.ts'
import * as auth from '#features/auth/store.ts'
import * as policy from '#features/policy/store.ts'
import { scheduleSyncOfUser } from '#features/predmkt/store/account-store.ts'
import { isUuid, sha256 } from '#kernel/id.ts'
import { operatorText } from '#kernel/task/operator-text.ts'
import { type Queryable, query } from '#store/query.ts'
import { oneOf, UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import { accessTopics, endRuns, endWebhooksOfApps, webhookTopics } from './end-schedules-and-webhooks.ts'

type User = { id: string; agent_id: string; suspended_at: Date | null; created_at: Date }

export async function userOf(db: Queryable, name: string): Promise<User> {
  const column = isUuid(name) ? 'id' : 'agent_id'
  const text = `select id, agent_id, suspended_at, created_at from app_user where ${column} = $1`
  const [row] = await query<User>(db, text, [name])
  if (!row) throw new UsageError(`There is no user ${name}. Give a user id or an agent id (agt_...).`)
  return row
}

const setSuspension =
  ({ suspended }: { suspended: boolean }): AdminCommand['run'] =>
  async (session, args) => {
    const { id } = await userOf(session.database.pool, args.positional('user'))
    const hashes = await session.database.transaction(async (tx) => {
      await auth.setSuspended(tx, id, suspended ? session.clock.now() : null)
      await session.record(tx, { command: suspended ? 'users freeze' : 'users unfreeze', subject: id })
      const found = await auth.tokenHashesOf(tx, id)
      if (suspended) {
        await endRuns(tx, { userId: id, at: session.clock.now() })
        await scheduleSyncOfUser(tx, id, session.clock.now())
      }
      return found
    })
    await session.notify([...accessTopics(id, hashes), ...webhookTopics(id)])
    session.printLine(suspended ? `User ${id} is suspended` : `User ${id} is no longer suspended`)
  }

const setKey: AdminCommand['run'] = async (session, args) => {
  const { id } = await userOf(session.database.pool, args.positional('user'))
  const key = decodeBase64(args.positional('public-key'), publicKeyBytes)
  if (!key || !isUsableKey(key))
    throw new UsageError('The key must be base64 of a 32-byte Ed25519 public key.')
  const hashes = await session.database.transaction(async (tx) => {
    const now = session.clock.now()
    await auth.revokeKeysOf(tx, id, now)
    if (!(await auth.addKey(tx, key, id, now)))
      throw new UsageError('This public key is or was registered. Generate a new one.')
    const details = { public_key_sha256: sha256(key) }
    await session.record(tx, { command: 'users set-key', subject: id, details })
    const removed = await auth.removeTokensOf(tx, id)
    await endWebhooksOfApps(session)(tx, { personId: id, clientId: undefined })
    return removed
  })
  await session.notify([...accessTopics(id, hashes), ...webhookTopics(id)])
  session.printLine(
    `User ${id} has the new key; the former keys and ${hashes.length} tokens are revoked, and the webhooks are deleted`,
  )
}

const showPolicy: AdminCommand['run'] = async (session, args) => {
  const { id } = await userOf(session.database.pool, args.positional('user'))
  const text = `select p.version, p.per_transaction_micros, p.per_day_micros, p.chat_per_day_micros, p.chains, p.tokens, p.recipients,
    (select min(since) from kill_switch where scope = 'user' and subject = $1::text) as kill_switch_since,
    (select string_agg(set_by, ', ' order by since) from kill_switch where scope = 'user' and subject = $1::text) as kill_switch_set_by,
    (select json_agg(json_build_object('field', field, 'micros', micros::text, 'entries', entries,
      'effective_at', effective_at) order by field) from policy_change where user_id = $1) as raised
    from (select 1) always left join policy p on p.user_id = $1`
  await session.record(session.database.pool, { command: 'policy show', subject: id })
  session.print(await query(session.database.pool, text, [id]))
}

const noLimits = {
  perTransactionMicros: null,
  perDayMicros: null,
  chatPerDayMicros: null,
  chains: null,
  tokens: null,
  recipients: null,
  approvalAboveMicros: null,
}

/** Resets limits that an attacker tightened, because an agent can only tighten them further. */
const resetPolicy: AdminCommand['run'] = async (session, args) => {
  const { id } = await userOf(session.database.pool, args.positional('user'))
  const { clock, database } = session
  await database.transaction(async (tx) => {
    const now = clock.now()
    await policy.lockPolicy(tx, id, now)
    const [before] = await query<{ version: number }>(tx, 'select * from policy where user_id = $1', [id])
    await policy.saveChanges(tx, id, [])
    await policy.savePolicy(tx, id, { own: noLimits, version: (before?.version ?? 0) + 1, now })
    await session.record(tx, { command: 'policy reset', subject: id, details: { before: printable(before) } })
  })
  session.printLine(`The limits of user ${id} are reset to those of the platform`)
}

const printable = (row: object | undefined) =>
  JSON.parse(
    JSON.stringify(row ?? {}, (_key, cell: unknown) => (typeof cell === 'bigint' ? String(cell) : cell)),
  )

const listSwitches: AdminCommand['run'] = async (session) => {
  const { pool } = session.database
  await session.record(pool, { command: 'kill-switch list' })
  session.print(
    await query(pool, 'select scope, subject, since, set_by, reason from kill_switch order by since'),
  )
}

const setSwitch: AdminCommand['run'] = async (session, args) => {
  const turnOn = oneOf('The switch', ['on', 'off'], args.positional('on|off')) === 'on'
  const [user, global] = [args.text('user'), args.flag('global')]
  if ((user === undefined) === !global) throw new UsageError('Give either --global or --user.')
  const { database, clock } = session
  const userId = user === undefined ? undefined : (await userOf(database.pool, user)).id
  const id: policy.SwitchId = userId === undefined ? { scope: 'global' } : { scope: 'user', userId }
  await database.transaction(async (tx) => {
    if (turnOn) await policy.setSwitch(tx, id, { since: clock.now(), setBy: operatorText(session) })
    else await policy.clearSwitch(tx, id)
    await session.record(tx, { command: `kill-switch ${turnOn ? 'on' : 'off'}`, subject: userId ?? 'global' })
  })
  session.printLine(
    `The kill switch ${userId ? `of user ${userId}` : 'for all users'} is ${turnOn ? 'on' : 'off'}`,
  )
}

export const userCommands: readonly AdminCommand[] = [
  {
    name: 'users freeze',
    positionals: ['<user>'],
    summary:
      'suspend a user: tokens answer suspended and none is issued, webhooks get nothing and schedules are paused; running tasks other than their runs go on',
    run: setSuspension({ suspended: true }),
  },
  {
    name: 'users unfreeze',
    positionals: ['<user>'],
    summary: 'end the suspension of a user',
    run: setSuspension({ suspended: false }),
  },
  {
    name: 'users set-key',
    positionals: ['<user>', '<public-key>'],
    summary:
      'replace a stolen or lost agent key; revokes every former key and token of the user, and deletes the webhooks',
    run: setKey,
  },
  {
    name: 'policy show',
    positionals: ['<user>'],
    changes: false,
    summary: 'show the limits that a user has set, and the kill switch',
    run: showPolicy,
  },
  {
    name: 'policy reset',
    positionals: ['<user>'],
    summary: 'reset the limits that a user, or an attacker, has set',
    run: resetPolicy,
  },
  {
    name: 'kill-switch list',
    changes: false,
    summary: 'list the switches that are on',
    run: listSwitches,
  },
  {
    name: 'kill-switch',
    positionals: ['<on|off>'],
    options: { global: 'boolean', user: 'string' },
    summary: 'pause or resume everything that opens or spends, for all users or for one',
    run: setSwitch,
  },
]
