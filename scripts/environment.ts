import { delimiter, dirname } from 'node:path'

export const root = dirname(import.meta.dirname)

/** Environment variables that a step may see; all others (NODE_OPTIONS, PG*, our own settings) could change it. */
const passedVariables = [
  'PATH HOME USER LOGNAME SHELL TERM LANG TZ TMPDIR TEMP TMP CI GITHUB_ACTIONS NO_COLOR FORCE_COLOR',
  'SystemRoot ComSpec PATHEXT APPDATA LOCALAPPDATA USERPROFILE',
  'DATABASE_URL GATEWAY_URL PROOF PROOF_SEED BENCH GROWTH_TASKS WEBHOOK_CURSORS',
]
  .join(' ')
  .split(' ')

export const cleanEnvironment = (extras: Record<string, string> = {}): NodeJS.ProcessEnv => {
  const isPassed = Object.keys(process.env).filter((name) => /^(LC_|PORTICO_TEST_)/.test(name))
  const env: NodeJS.ProcessEnv = {}
  for (const name of [...passedVariables, ...isPassed])
    if (process.env[name] !== undefined) env[name] = process.env[name]
  const path = [`${root}/node_modules/.bin`, dirname(process.execPath), env.PATH ?? '']
  return { ...env, PATH: path.join(delimiter), ...extras }
}

/** Type stripping as a function of node:module still prints a warning, which is of no use here. */
export const nodeFlags = ['--disable-warning=ExperimentalWarning']
