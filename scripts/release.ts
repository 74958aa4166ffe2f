/**
 * Writes the package to `dist/package` and packs it. The SDK and the command line are JavaScript with types; what they
 * read from the contracts is written out, so that they need no contract, no type stripping and no dependency. The gateway
 * and its world are the sources with their types stripped; the packages that they need are optional dependencies.
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
import { basename, dirname, join } from 'node:path'
import { commands } from '../src/edges/cli/commands.ts'
import { operations } from '../src/sdk/operations.ts'
import { root } from './environment.ts'
import { apiTypes } from './sdk-types.ts'

const out = process.argv[2] ?? join(root, 'dist')
const [sources, target] = [join(out, 'source'), join(out, 'package')]
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
    if (!statSync(from).isFile() || path.endsWith('.test.ts') || path.endsWith('.sol')) continue
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
  const { name, version } = manifest
  const own = { name, version, type: 'module', imports: { '#world/*': './world/*', '#*': './src/*' } }
  writeFileSync(join(target, 'gateway/package.json'), JSON.stringify(own))
  return [...packages, ...namedPackages]
}

/** As the repository pins them. */
function gatewayDependencies(packages: readonly string[]): Record<string, string> {
  const { dependencies, optionalDependencies, devDependencies } = manifest
  const all: Record<string, string> = { ...devDependencies, ...dependencies }
  const imported = packages.filter((name) => name in all && name !== 'commander')
  return {
    ...Object.fromEntries(imported.sort().map((name) => [name, all[name]!])),
    ...optionalDependencies,
  }
}

function writeManifest(gatewayPackages: readonly string[]): void {
  const { version, description, license, dependencies } = manifest
  const cli = existsSync(join(target, 'cli/main.js'))
  const text = {
    name: 'portico',
    version,
    description,
    license,
    type: 'module',
    engines: { node: '>=20.12' },
    exports: { './sdk': { types: './sdk/sdk.d.ts', default: './sdk/sdk.js' } },
    ...(cli && {
      bin: { portico: './cli/launch.cjs' },
      dependencies: { commander: dependencies.commander },
      // In the package itself: it installs without a registry.
      bundleDependencies: ['commander'],
    }),
    optionalDependencies: gatewayDependencies(gatewayPackages),
  }
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(text, null, 2)}\n`)
  if (!cli) return
  cpSync(join(root, 'src/edges/cli/launch.cjs'), join(target, 'cli/launch.cjs'))
  chmodSync(join(target, 'cli/launch.cjs'), 0o755)
  cpSync(join(root, 'node_modules/commander'), join(target, 'node_modules/commander'), { recursive: true })
}

rmSync(out, { recursive: true, force: true })
mkdirSync(target, { recursive: true })
writeFileSync(join(out, 'package.json'), '{"type":"module"}')
copySources()
emit()
writeManifest(copyGateway())
for (const [from, to] of [
  ['LICENSE', 'LICENSE'],
  ['docs/sdk.md', 'README.md'],
] as const)
  cpSync(join(root, from), join(target, to))
const [packed] = JSON.parse(
  execFileSync('npm', ['pack', '--json', '--pack-destination', out], { cwd: target, encoding: 'utf8' }),
) as { filename: string; size: number }[]
if (!packed) throw new Error('npm packed nothing')
console.log(`${join(out, packed.filename)} (${Math.round(packed.size / 1024)} KiB)`)
