import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** Whether this is a checkout with the gateway in it; the published package has the client alone. */
export const hasGateway =
  existsSync(join(root, 'src/entry.js')) && existsSync(join(root, 'src/admin/admin.ts'))

/** Runs `npm start` or `npm run admin` without npm, and resolves with its exit code. */
function run(args: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [join(root, 'scripts/with-node.cjs'), ...args], { stdio: 'inherit' })
  const forward = (signal: NodeJS.Signals) => child.kill(signal)
  process.once('SIGTERM', forward)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 1))
  })
}

export const up = (): Promise<number> => run(['--max-semi-space-size=4', join(root, 'src/entry.js')])
export const admin = (args: readonly string[]): Promise<number> =>
  run([join(root, 'src/admin/admin.ts'), ...args])
