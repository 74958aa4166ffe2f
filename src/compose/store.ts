import type { Config } from '#config.ts'
import type { Failpoints } from '#kernel/failpoint.ts'
import type { Log } from '#kernel/log.ts'
import { openDatabase } from '#store/database.ts'
import { migrate } from '#store/migrate.ts'

type Needs = {
  config: Config
  log: Log
  say: (line: string) => void
  databaseUrl: string
  failpoints: Failpoints
}

export async function openStore(
  { config, log, say, databaseUrl, failpoints }: Needs,
  parts: AsyncDisposableStack,
) {
  const directUrl = config.DATABASE_DIRECT_URL ?? databaseUrl
  await migrate({ url: directUrl, progress: say })
  const onIdleError = (error: Error) => log.warn({ error }, 'an idle database connection was lost')
  const settings = { url: databaseUrl, directUrl, failpoints, onIdleError }
  const database = openDatabase({ ...settings, poolMax: config.DATABASE_POOL, applicationName: 'portico' })
  parts.defer(() => database.close())
  // Signatures are made inside transactions: their own small pool is never used up by those that wait for it.
  const custody = openDatabase({ ...settings, poolMax: 4, applicationName: 'portico custody' })
  parts.defer(() => custody.close())
  return { database, custody }
}
export type Stores = Awaited<ReturnType<typeof openStore>>
