import { query } from '#store/query.ts'
import type { AdminCommand } from './command.ts'

const listActions: AdminCommand['run'] = async (session, args) => {
  const { pool } = session.database
  await session.record(pool, { command: 'log' })
  const limit = Math.min(Math.max(Number.parseInt(args.text('limit') ?? '100', 10) || 100, 1), 10_000)
  const text = `select id, at, actor, command, subject, reason, details from admin_action
    where ($1::text is null or subject = $1) order by id desc limit $2`
  session.print(await query(pool, text, [args.text('subject') ?? null, limit]))
}

export const logCommands: readonly AdminCommand[] = [
  {
    name: 'log',
    options: { subject: 'string', limit: 'string' },
    changes: false,
    summary: 'list operator actions, newest first',
    run: listActions,
  },
]
