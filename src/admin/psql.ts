import { createInterface } from 'node:readline'
import pg from 'pg'
import { UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import { type Row, tableLines } from './output.ts'
import type { Session } from './session.ts'

/** A SQL prompt, because the embedded server includes no psql, and the system's is often too old. */

const statementCharsMax = 10_000

async function connect({ databaseUrl }: Session): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: 'portico admin psql' })
  client.on('error', () => {})
  await client.connect()
  return client
}

type Result = pg.QueryResult<Record<string, unknown>>

/** The extended protocol accepts one statement, so that none can end the read-only transaction before a write. */
async function readOnly(client: pg.Client, text: string): Promise<Result> {
  const extended: pg.QueryConfig & { queryMode: 'extended' } = { text, queryMode: 'extended' }
  await client.query('begin read only')
  try {
    return await client.query(extended)
  } finally {
    await client.query('rollback')
  }
}

async function execute(
  session: Session,
  client: pg.Client,
  statement: string,
  { write }: { write: boolean },
) {
  const details = { statement: statement.slice(0, statementCharsMax), write }
  await session.record(session.database.pool, { command: 'psql', details })
  const found: Result | Result[] = await (write
    ? client.query(statement)
    : readOnly(client, statement)
  ).catch((error: unknown) => {
    throw error instanceof pg.DatabaseError ? new UsageError(error.message) : error
  })
  for (const result of Array.isArray(found) ? found : [found]) {
    if (result.fields.length > 0) {
      session.print(result.rows as Row[])
      if (!session.json)
        session.printLine(`(${result.rows.length} ${result.rows.length === 1 ? 'row' : 'rows'})`)
    } else session.printLine(`${result.command}${result.rowCount === null ? '' : ` ${result.rowCount}`}`)
  }
}

/** A statement ends with a semicolon at the end of a line, or with the input. */
async function* statementsOf(input: NodeJS.ReadStream): AsyncGenerator<string> {
  const lines = createInterface({ input, terminal: false })
  let buffered = ''
  if (input.isTTY) process.stderr.write('portico=> ')
  for await (const line of lines) {
    buffered += `${line}\n`
    if (/;\s*$/.test(line)) {
      yield buffered
      buffered = ''
    }
    if (input.isTTY) process.stderr.write(buffered.trim() === '' ? 'portico=> ' : 'portico-> ')
  }
  if (buffered.trim() !== '') yield buffered
}

const psql: AdminCommand['run'] = async (session, args) => {
  const write = args.flag('write')
  if (args.flag('url')) {
    await session.record(session.database.pool, { command: 'psql', details: { url: true } })
    return session.printLine(session.databaseUrl)
  }
  if (write && session.reason === null)
    throw new UsageError('--write requires --why: the reason is recorded.')
  const client = await connect(session)
  try {
    const statement = args.optional('statement')
    if (statement !== undefined) return await execute(session, client, statement, { write })
    for await (const each of statementsOf(process.stdin)) {
      const failure = await execute(session, client, each, { write }).catch((error: Error) => error)
      if (!failure) continue
      if (!process.stdin.isTTY) throw failure
      for (const line of tableLines([{ error: failure.message }])) session.printLine(line)
    }
  } finally {
    await client.end()
  }
}

export const psqlCommands: readonly AdminCommand[] = [
  {
    name: 'psql',
    positionals: ['[<statement>]'],
    options: { write: 'boolean', url: 'boolean' },
    changes: false,
    summary:
      'run SQL (read-only without --write) from the argument or standard input; --url prints the address for another client',
    run: psql,
  },
]
