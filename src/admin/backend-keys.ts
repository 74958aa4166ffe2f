import { makeBackendKey, type NewBackendKey } from '#features/image/backend-key-format.ts'
import { later } from '#kernel/clock.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import { UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import type { Session } from './session.ts'
import { userOf } from './users.ts'

/** Keys of the operator's servers, which make images for users. A key is printed once and stored as its hash. */

const rowsMax = 1_000
const nameForm = /^[a-z0-9][a-z0-9-]{0,63}$/
const overlapHoursDefault = 24
const overlapHoursMax = 24 * 30
const hourMs = 3_600_000

type Backend = { id: string; name: string }

async function backendOf(db: Queryable, name: string): Promise<Backend> {
  const [row] = await query<Backend>(db, 'select id, name from backend where name = $1', [name])
  if (!row) throw new UsageError(`There is no backend ${name}.`)
  return row
}

async function addKey(tx: Tx, backendId: string, now: Date): Promise<NewBackendKey> {
  const made = makeBackendKey(systemRandom)
  const text = 'insert into backend_key (id, backend_id, key_hash, created_at) values ($1, $2, $3, $4)'
  await query(tx, text, [made.id, backendId, made.hash, now])
  return made
}

/** Prints the whole key of a backend, which is shown nowhere else. */
function printKey(
  { json, print, printLine }: Session,
  name: string,
  { key }: NewBackendKey,
  note: string,
): void {
  if (json) {
    print([{ backend: name, key }])
    return
  }
  printLine(key)
  printLine(`This is the key of ${name}, and it is not shown again. ${note}`)
}

const createBackend: AdminCommand['run'] = async (session, args) => {
  const { database, clock, record } = session
  const name = args.positional('backend')
  if (!nameForm.test(name))
    throw new UsageError('The name of a backend has lower-case letters, digits and dashes, at most 64.')
  const payer = args.text('account')
  const account = payer === undefined ? null : (await userOf(database.pool, payer)).id
  const made = await database.transaction(async (tx) => {
    const now = clock.now()
    const id = uuidv7(now, systemRandom)
    const text = `insert into backend (id, name, account_id, created_at) values ($1, $2, $3, $4)
      on conflict (name) do nothing returning id`
    if ((await query(tx, text, [id, name, account, now])).length === 0)
      throw new UsageError(`There is a backend ${name}. Rotate its key, or choose another name.`)
    const key = await addKey(tx, id, now)
    const details = { backend: name, key: key.id, account }
    await record(tx, { command: 'backend-keys create', subject: account ?? undefined, details })
    return key
  })
  printKey(session, name, made, account ? 'Its account pays.' : 'The users that it names pay.')
}

const rotateKey: AdminCommand['run'] = async (session, args) => {
  const { database, clock, record } = session
  const { id, name } = await backendOf(database.pool, args.positional('backend'))
  const given = args.text('overlap-hours') ?? String(overlapHoursDefault)
  const hours = /^\d{1,4}$/.test(given) ? Number(given) : Number.NaN
  if (!(hours <= overlapHoursMax))
    throw new UsageError(`--overlap-hours is a number from 0 to ${overlapHoursMax}.`)
  const made = await database.transaction(async (tx) => {
    const now = clock.now()
    const end = later(now, hours * hourMs)
    await query(
      tx,
      `update backend_key set expires_at = $2 where backend_id = $1 and (expires_at is null or expires_at > $2)
       returning id`,
      [id, end],
    )
    const key = await addKey(tx, id, now)
    await record(tx, { command: 'backend-keys rotate', details: { backend: name, key: key.id, hours } })
    return key
  })
  printKey(session, name, made, `Its other keys end in ${hours} hours.`)
}

const revokeKey: AdminCommand['run'] = async (session, args) => {
  const { database, clock, record } = session
  const [key, backend] = [args.text('key'), args.text('backend')]
  if ((key === undefined) === (backend === undefined))
    throw new UsageError('Give either --key (the 16 digits after bk_) or --backend.')
  const ended = await database.transaction(async (tx) => {
    const now = clock.now()
    const column = key === undefined ? 'backend_id' : 'id'
    const value = key ?? (await backendOf(tx, backend!)).id
    const rows = await query<{ id: string }>(
      tx,
      `update backend_key set expires_at = $2 where ${column} = $1 and (expires_at is null or expires_at > $2)
       returning id`,
      [value, now],
    )
    if (rows.length === 0) throw new UsageError('There is no such key that is in use.')
    const details = { keys: rows.map(({ id }) => id) }
    await record(tx, { command: 'backend-keys revoke', details })
    return rows
  })
  session.printLine(`${ended.length === 1 ? '1 key is' : `${ended.length} keys are`} revoked`)
}

const listKeys: AdminCommand['run'] = async (session) => {
  const { pool } = session.database
  await session.record(pool, { command: 'backend-keys list' })
  const text = `select b.name as backend, k.id as key, u.agent_id as account, k.created_at, k.expires_at
    from backend b left join backend_key k on k.backend_id = b.id left join app_user u on u.id = b.account_id
    order by b.name, k.created_at limit ${rowsMax}`
  session.print(await query(pool, text))
}

export const backendKeyCommands: readonly AdminCommand[] = [
  {
    name: 'backend-keys create',
    positionals: ['<backend>'],
    options: { account: 'string' },
    summary:
      'make a backend and print its key; it spends the credits of the users that it names, or those of --account',
    run: createBackend,
  },
  {
    name: 'backend-keys rotate',
    positionals: ['<backend>'],
    options: { 'overlap-hours': 'string' },
    summary: 'print another key of a backend; the former ones end after --overlap-hours (24)',
    run: rotateKey,
  },
  {
    name: 'backend-keys revoke',
    options: { key: 'string', backend: 'string' },
    summary: 'end one key of a backend, or all of them, at once and on every instance',
    run: revokeKey,
  },
  {
    name: 'backend-keys list',
    changes: false,
    summary: 'list the backends with their keys, without the secrets',
    run: listKeys,
  },
]
