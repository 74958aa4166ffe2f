import { randomInt } from 'node:crypto'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { type Child, startChild } from '#world/child.ts'
import { type Rpc, rpcAt } from './rpc.ts'

/** Runs the platform's binary directly: the package's launcher costs half a second per start. */
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

/**
 * Blocks whose transactions, receipts and logs a node keeps: ten minutes at six transactions a second. The node answers
 * no request while it serialises them for a save, and each costs about 15 KB of memory.
 */
export const retainedBlocks = 4_000
/** Blocks whose state stays readable. Each is a copy of the whole state; a reorganisation is never deeper. */
const retainedStates = 128

/**
 * The node checks neither host nor origin: it would answer a web page whose host name resolves to this machine, and the
 * WebSocket of any page. Where all of 127/8 is this machine, it listens on a random address of that range.
 */
const privateHost = (): string =>
  process.platform === 'linux' || process.platform === 'win32'
    ? `127.${[randomInt(1, 255), randomInt(256), randomInt(1, 255)].join('.')}`
    : '127.0.0.1'

export type Anvil = { child: Child; host: string; port: number; rpc: Rpc }
type Options = {
  chainId: string
  pidFile: string
  load?: string
  exitFile: string
  blockSeconds?: number
  genesisSeconds?: number
}

export const startAnvil = async (options: Options): Promise<Anvil> => {
  const { chainId, pidFile, load, exitFile, blockSeconds, genesisSeconds } = options
  const host = privateHost()
  const args = [
    '--chain-id',
    chainId,
    '--port',
    '0',
    '--host',
    host,
    '--hardfork',
    'osaka',
    // No transaction has more than `transactionGasMax`, as on the public chains.
    '--enable-tx-gas-limit',
    // No browser page reads a chain; by default anvil allows every origin.
    '--no-cors',
    '--prune-history',
    String(retainedStates),
    // Receipts live as long as their block keeps its transactions; empty blocks count as well.
    '--transaction-block-keeper',
    String(retainedBlocks),
    // Saving is done in node.ts; anvil writes only when it ends.
    '--dump-state',
    exitFile,
    '--state-interval',
    '1000000000',
    ...(load === undefined ? [] : ['--load-state', load]),
    ...(genesisSeconds === undefined ? [] : ['--timestamp', String(genesisSeconds)]),
    ...(blockSeconds === undefined ? [] : ['--block-time', String(blockSeconds)]),
  ]
  // Only the banner contains the port that the system chose, so anvil starts verbose and is silenced afterwards.
  const parsePort = (output: string) => {
    const found = /Listening on [\d.]+:(\d+)/.exec(output)
    return found ? Number(found[1]) : undefined
  }
  const { child, port } = await startChild({
    command: binary(),
    args,
    pidFile,
    parsePort,
    holdStdin: false,
  })
  const rpc = rpcAt(port, host)
  await rpc.call('anvil_setLoggingEnabled', [false])
  return { child, host, port, rpc }
}
