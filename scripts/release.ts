/**
 * Writes and packs the two packages: `portico-sdk` in `dist/sdk`, and `portico`, which is the gateway, its world and the
 * command line, in `dist/package`. The SDK and the command line are JavaScript with types; what they read from the
 * contracts is written out, so that they need no contract and no type stripping. The gateway and its world are the sources
 * with their types stripped.
 */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { commands } from '../src/edges/cli/commands.ts'
import { operations } from '../src/sdk/operations.ts'
import { root } from './environment.ts'
import { apiTypes } from './sdk-types.ts'

const out = resolve(process.argv[2] ?? join(root, 'dist'))
const [sources, target, sdkTarget] = [join(out, 'source'), join(out, 'package'), join(out, 'sdk')]
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** The part of a file that declares types, and the values beside them. */
const withValue = (path: string, name: string, type: string, value: unknown): string => {
  const text = readFileSync(join(root, path), 'utf8')
  const types = [...text.matchAll(/(?:\/\*\*[^/]*\*\/\n)?export type [\s\S]*?\n(?=\n)/g)].map(
    ([each]) => each,
  )
  const imports = [...text.matchAll(/^import type .* from '\.\/.*\n/gm)].map(([each]) => each)
  return `${imports.join('')}${types.join('\n')}\nexport const ${name}: ${type} = ${JSON.stringify(value)}\n`
}

const written: Record<string, () => string> = {
  'sdk/operations.ts': () =>
    withValue('src/sdk/operations.ts', 'operations', 'readonly OperationRow[]', operations).replaceAll(
      /Entry\['(kind|method)'\]/g,
      (_, field: string) =>
        field === 'kind'
          ? "'read' | 'act' | 'task' | 'stream'"
          : "'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'",
    ),
  'sdk/api.ts': apiTypes,
  'cli/commands.ts': () => withValue('src/edges/cli/commands.ts', 'commands', 'readonly Command[]', commands),
}

/** What a release has read already. */
const readFiles = ['src/edges/cli/schema-view.ts']

/** The files of the language that the client uses, which import nothing but each other. */
function copyKernel(text: string): string {
  return text.replaceAll(/'#kernel\/([\w/-]+)\/([\w-]+)\.ts'/g, (_, folder: string, file: string) => {
    const from = join(root, 'src/kernel', folder, `${file}.ts`)
    const to = join(sources, 'kernel', `${file}.ts`)
    if (!existsSync(to)) {
      mkdirSync(dirname(to), { recursive: true })
      const own = readFileSync(from, 'utf8')
      writeFileSync(to, own)
      for (const [, beside] of own.matchAll(/from '\.\/([\w-]+)\.ts'/g))
        copyKernel(`'#kernel/${folder}/${beside}.ts'`)
    }
    return `'../kernel/${file}.ts'`
  })
}

function copySources(): void {
  for (const [from, to] of [
    ['src/sdk', 'sdk'],
    ['src/edges/cli', 'cli'],
  ] as const) {
    mkdirSync(join(sources, to), { recursive: true })
    for (const path of globSync(`${from}/*.ts`, { cwd: root })) {
      if (path.endsWith('.test.ts') || readFiles.includes(path)) continue
      const name = `${to}/${basename(path)}`
      const text = written[name]?.() ?? readFileSync(join(root, path), 'utf8')
      writeFileSync(join(sources, name), copyKernel(text).replaceAll("'#sdk/", "'../sdk/"))
    }
  }
}

function emit(): void {
  const options = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      noEmit: false,
      declaration: true,
      rewriteRelativeImportExtensions: true,
      target: 'es2024',
      rootDir: sources,
      outDir: target,
      typeRoots: [join(root, 'node_modules/@types')],
      // The sources lie outside the repository where a test releases.
      paths: { commander: [join(root, 'node_modules/commander/typings/index.d.ts')] },
    },
    include: [`${sources}/**/*.ts`],
  }
  writeFileSync(join(out, 'tsconfig.json'), JSON.stringify(options))
  execFileSync(
    process.execPath,
    [join(root, 'node_modules/typescript-native/bin/tsc'), '-p', join(out, 'tsconfig.json')],
    { stdio: 'inherit' },
  )
}

/** What is started or read by a name that no import statement has: of the world, and the font of charts. */
const namedPackages = [
  '@foundry-rs/anvil',
  '@uniswap/v2-core',
  '@uniswap/v2-periphery',
  '@expo-google-fonts/ibm-plex-sans',
]
const bareImport = /(?:\bfrom|\bimport) ?\(?'((?:@[\w-]+\/)?[a-z][\w.-]*)(?:\/[^']*)?'/g

/** The sources of the gateway without their types, in the folders of the repository; returns the packages they import. */
function copyGateway(): string[] {
  const packages = new Set<string>()
  for (const path of globSync('{src,world,scripts/with-node.cjs}/**', { cwd: root })) {
    const from = join(root, path)
    if (!statSync(from).isFile() || /\.test\.ts$|\.sol$|^world\/conformance\//.test(path)) continue
    const to = join(target, 'gateway', path)
    mkdirSync(dirname(to), { recursive: true })
    if (!/\.[jt]s$/.test(path)) {
      cpSync(from, to)
      continue
    }
    const text = readFileSync(from, 'utf8')
    const code = path.endsWith('.ts')
      ? stripTypeScriptTypes(text)
      : text.replaceAll("'module-typescript'", "'module'")
    for (const [, name] of code.matchAll(bareImport)) if (name) packages.add(name)
    writeFileSync(to.replace(/\.ts$/, '.js'), code.replaceAll(/(?<=[\w-])\.ts(?=')/g, '.js'))
  }
  // The launcher reads which Node the gateway was tried with.
  const { name, version, type, imports, optionalDependencies } = manifest
  const own = { name, version, type, imports, optionalDependencies }
  writeFileSync(join(target, 'gateway/package.json'), JSON.stringify(own))
  return [...packages, ...namedPackages]
}

/** As the repository pins them, without its Node, which the command line fetches where the machine has an older one. */
function dependenciesOf(packages: readonly string[]) {
  const { dependencies, optionalDependencies, devDependencies } = manifest
  const all: Record<string, string> = { ...devDependencies, ...dependencies }
  const imported = packages.filter((name) => name in all).sort()
  const binaries = Object.entries(optionalDependencies).filter(([name]) => !name.startsWith('node-'))
  return {
    dependencies: Object.fromEntries(imported.map((name) => [name, all[name]])),
    optionalDependencies: Object.fromEntries(binaries),
  }
}

const { version, description, license } = manifest
const shared = { version, license, type: 'module' }

function writeManifest(folder: string, fields: object): void {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(fields, null, 2)}\n`)
  cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
}

function writeSdk(): void {
  cpSync(join(target, 'sdk'), join(sdkTarget, 'sdk'), { recursive: true })
  writeManifest(sdkTarget, {
    name: 'portico-sdk',
    description: 'Typed client of Portico, for Node and browsers',
    ...shared,
    engines: { node: '>=20.12' },
    exports: { '.': { types: './sdk/sdk.d.ts', default: './sdk/sdk.js' } },
  })
  cpSync(join(root, 'docs/sdk.md'), join(sdkTarget, 'README.md'))
}

function writeGateway(packages: readonly string[]): void {
  cpSync(join(root, 'src/edges/cli/launch.cjs'), join(target, 'cli/launch.cjs'))
  chmodSync(join(target, 'cli/launch.cjs'), 0o755)
  writeManifest(target, {
    name: 'portico',
    description,
    ...shared,
    // The least that all of its packages accept; the gateway itself needs a Node 24.
    engines: { node: '>=22.19' },
    bin: { portico: './cli/launch.cjs' },
    exports: { './sdk': { types: './sdk/sdk.d.ts', default: './sdk/sdk.js' } },
    ...dependenciesOf([...packages, 'commander']),
  })
  cpSync(join(root, 'README.md'), join(target, 'README.md'))
}

rmSync(out, { recursive: true, force: true })
mkdirSync(target, { recursive: true })
writeFileSync(join(out, 'package.json'), '{"type":"module"}')
copySources()
emit()
writeSdk()
writeGateway(copyGateway())
for (const cwd of [target, sdkTarget]) {
  const command = ['pack', '--json', '--pack-destination', out]
  const [packed] = JSON.parse(execFileSync('npm', command, { cwd, encoding: 'utf8' })) as {
    filename: string
    size: number
  }[]
  if (!packed) throw new Error('npm packed nothing')
  console.log(`${join(out, packed.filename)} (${Math.round(packed.size / 1024)} KiB)`)
}
