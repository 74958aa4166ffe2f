/**
 * Compiles the local world's contracts, and the gateway's own code for simulations; with --check it only reports whether
 * the committed artifacts are current.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'

const require = createRequire(import.meta.url)
const solc = require('solc') as {
  compile(
    input: string,
    callbacks: { import: (path: string) => { contents: string } | { error: string } },
  ): string
}

type Slot = { label: string; slot: string; offset: number }
type Compiled = {
  abi: unknown[]
  evm: { bytecode: { object: string }; deployedBytecode: { object: string } }
  storageLayout: { storage: Slot[] }
}
type Output = {
  errors?: { severity: string; formattedMessage: string }[]
  contracts: Record<string, Record<string, Compiled>>
}

const worldFolder = join(import.meta.dirname, '../world/evm')
/** Its contracts are placed at the addresses of upstream, so nothing but the interface and the runtime is needed. */
const placedFolder = join(import.meta.dirname, '../world/polymarket')
const gatewayFolder = join(import.meta.dirname, '../src/upstreams/evm')

/** What several contracts of a folder import stands in `shared` and has no artifact of its own. */
const compile = (folder: string) => {
  const files = readdirSync(join(folder, 'contracts'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.sol'))
    .map((file) => file.replaceAll('\\', '/'))
  const names = files.filter((file) => !file.includes('/')).map((file) => basename(file, '.sol'))
  const sources = Object.fromEntries(
    files.map((file) => [file, { content: readFileSync(join(folder, 'contracts', file), 'utf8') }]),
  )
  const settings = {
    optimizer: { enabled: true, runs: 200 },
    evmVersion: 'cancun',
    // Without it a change of a comment would change the bytecode.
    metadata: { bytecodeHash: 'none', appendCBOR: false },
    outputSelection: {
      '*': { '*': ['abi', 'evm.bytecode.object', 'evm.deployedBytecode.object', 'storageLayout'] },
    },
  }
  const output = JSON.parse(
    solc.compile(JSON.stringify({ language: 'Solidity', sources, settings }), {
      import: (path) => ({ contents: readFileSync(require.resolve(path), 'utf8') }),
    }),
  ) as Output
  const problems = (output.errors ?? []).map((problem) => problem.formattedMessage)
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return names.map((name): [string, Compiled] => {
    const compiled = output.contracts[`${name}.sol`]?.[name]
    if (!compiled) throw new Error(`${name}.sol does not define a contract ${name}.`)
    return [name, compiled]
  })
}

const artifactOf = (name: string, compiled: Compiled) => {
  const slots = Object.fromEntries(
    compiled.storageLayout.storage.map(({ label, slot }) => [label, Number(slot)]),
  )
  const artifact = {
    contract: name,
    abi: compiled.abi,
    slots,
    bytecode: `0x${compiled.evm.bytecode.object}`,
    runtime: `0x${compiled.evm.deployedBytecode.object}`,
  }
  return `${JSON.stringify(artifact, null, 1)}\n`
}

const placedArtifactOf = (name: string, { abi, evm }: Compiled) =>
  `${JSON.stringify({ contract: name, abi, runtime: `0x${evm.deployedBytecode.object}` }, null, 1)}\n`

/** Code that a node runs in a simulation, so nothing but the runtime is needed. */
const codeOf = (name: string, { evm }: Compiled) =>
  `/** Written by scripts/contracts.ts from contracts/${name}.sol. */\nexport const ${name.toLowerCase()}Code =\n  '0x${evm.deployedBytecode.object}'\n`

const written = [
  ...compile(worldFolder).map(([name, compiled]) => ({
    name,
    text: artifactOf(name, compiled),
    path: join(worldFolder, 'artifacts', `${name}.json`),
  })),
  ...compile(placedFolder).map(([name, compiled]) => ({
    name,
    text: placedArtifactOf(name, compiled),
    path: join(placedFolder, 'artifacts', `${name}.json`),
  })),
  ...compile(gatewayFolder).map(([name, compiled]) => ({
    name,
    text: codeOf(name, compiled),
    path: join(gatewayFolder, `${name.toLowerCase()}-code.ts`),
  })),
]
const stale: string[] = []
for (const { name, text, path } of written) {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) continue
  stale.push(name)
  if (!process.argv.includes('--check')) writeFileSync(path, text)
}
if (process.argv.includes('--check') && stale.length > 0) {
  console.error(`Artifacts differ from their sources: ${stale.join(', ')}. Run node scripts/contracts.ts.`)
  process.exitCode = 1
} else console.log(stale.length > 0 ? `Compiled ${stale.join(', ')}.` : 'All artifacts are current.')
