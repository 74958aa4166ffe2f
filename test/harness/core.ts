/** Database and task engine as `compose` builds them, for tests and benches that bring their own operations. */
import { type CoreOverrides, openCore } from '#compose/core.ts'
import { type Config, readConfig } from '#config.ts'
import { noFailpoints } from '#kernel/failpoint.ts'
import { type Log, silentLog } from '#kernel/log.ts'
import type { WitnessFile } from '#store/database-witness-file.ts'

export type CoreSettings = {
  databaseUrl: string
  /** Settings as the environment gives them. */
  env?: Record<string, string>
  /** Settings that the environment may not give. */
  config?: Partial<Config>
  log?: Log
  witnessFile?: WitnessFile
}

const testEnvironment = { LEASE_MS: '2000', DATABASE_POOL: '24', LOG_LEVEL: 'silent' }
export const testOverrides: CoreOverrides = { claimPollMs: 100 }

export const coreDeps = ({ databaseUrl, env, config, log = silentLog, witnessFile }: CoreSettings) => ({
  ...(witnessFile && { witnessFile }),
  config: { ...readConfig({ ...testEnvironment, ...env }), ...config },
  databaseUrl,
  log,
  printLine: () => {},
  failpoints: noFailpoints,
  baseUrl: () => 'http://gateway.test',
})

export const openTestCore = ({ overrides, ...settings }: CoreSettings & { overrides?: CoreOverrides }) =>
  openCore(coreDeps(settings), { ...testOverrides, ...overrides })
export type TestCore = Awaited<ReturnType<typeof openTestCore>>
