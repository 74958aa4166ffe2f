import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { type Child, startChild } from '#world/child.ts'
import { type Rpc, rpcAt } from './rpc.ts'

/** The package's own launcher costs half a second per start, so the platform's binary is run directly. */
const binary = (): string => {
  const cpu = { x64: 'amd64', arm64: 'arm64' }[process.arch as string]
  const os = { linux: 'linux', darwin: 'darwin', win32: 'win32' }[process.platform as string]
  const name = `@foundry-rs/anvil-${os}-${cpu}`
  const launcher = createRequire(import.meta.url).resolve('@foundry-rs/anvil/package.json')
  try {
    const found = createRequire(launcher).resolve(`${name}/package.json`)
    return join(dirname(found), 'bin', process.platform === 'win32' ? 'anvil.exe' : 'anvil')
  } catch (cause) {
    throw new Error(`The package ${name} is missing: the local chains do not run on this platform.`, {
      cause,
    })
  }
}

export type Anvil = { child: Child; port: number; rpc: Rpc }
type Options = { chainId: string; pidFile: string; load?: string; exitFile: string; blockSeconds?: number }

export const startAnvil = async (options: Options): Promise<Anvil> => {
  const { chainId, pidFile, load, exitFile, blockSeconds } = options
  const args = [
    ...['--chain-id', chainId, '--port', '0', '--host', '127.0.0.1', '--hardfork', 'prague'],
    // States of the last 64 blocks stay readable, which is also how deep a reorg can go.
    ...['--prune-history', '64'],
    // Receipts live as long as their block keeps its transactions, and idle blocks count too.
    ...['--transaction-block-keeper', '200000'],
    // Saving is ours (node.ts); anvil writes only when it ends.
    ...['--dump-state', exitFile, '--state-interval', '1000000000'],
    ...(load === undefined ? [] : ['--load-state', load]),
    ...(blockSeconds === undefined ? [] : ['--block-time', String(blockSeconds)]),
  ]
  // Only the banner tells the port that the system chose, so anvil starts loud and is silenced afterwards.
  const portIn = (output: string) => {
    const found = /Listening on 127\.0\.0\.1:(\d+)/.exec(output)
    return found ? Number(found[1]) : undefined
  }
  const { child, port } = await startChild({ command: binary(), args, pidFile, portIn, holdStdin: false })
  const rpc = rpcAt(port)
  await rpc.call('anvil_setLoggingEnabled', [false])
  return { child, port, rpc }
}
