import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder that contains `src`: the checkout, or the folder `gateway` of the published package. */
const root = ['../../../', '../gateway/']
  .map((path) => fileURLToPath(new URL(path, import.meta.url)))
  .find((path) => existsSync(join(path, 'src/entry.js')))
const adminFile = ['src/admin/admin.ts', 'src/admin/admin.js'].find(
  (path) => root !== undefined && existsSync(join(root, path)),
)

export const hasGateway = root !== undefined && adminFile !== undefined

/** The version of the package; the client and the gateway in a package are of one release. */
export const packageVersion =
  root !== undefined && hasGateway
    ? (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version
    : undefined

/** Runs `npm start` or `npm run admin` without npm, and resolves with its exit code. */
function run(args: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [join(root!, 'scripts/with-node.cjs'), ...args], { stdio: 'inherit' })
  const forward = (signal: NodeJS.Signals) => child.kill(signal)
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) process.on(signal, forward)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 1))
  })
}

export const up = (): Promise<number> => run(['--max-semi-space-size=4', join(root!, 'src/entry.js')])
export const agent = (): Promise<number> => run([join(root!, 'src/entry.js'), 'agent'])
export const admin = (args: readonly string[]): Promise<number> => run([join(root!, adminFile!), ...args])
