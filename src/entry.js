// This is JavaScript, because at every start Node strips types from what it loads before the compile cache is
// on.
import { lstatSync, statSync } from 'node:fs'
import { enableCompileCache, registerHooks } from 'node:module'
import { join } from 'node:path'

// The default folder is that of config.ts; a different one here would only cost time.
const dataDir = process.env.DATA_DIR || '.portico'
const cache = join(dataDir, 'compile-cache')

/** Returns whether the cache folder exists and no other account could write to it; the first start makes it. */
function isSafe() {
  const uid = process.getuid?.()
  const [above, found] = [statSync(dataDir, { throwIfNoEntry: false }), lstatSync(cache, { throwIfNoEntry: false })]
  if (!above?.isDirectory() || !found?.isDirectory()) return false
  if (uid === undefined) return true
  return above.uid === uid && found.uid === uid && ((above.mode & 0o022) | (found.mode & 0o077)) === 0
}
if (isSafe()) enableCompileCache(cache)

const folder = new URL('.', import.meta.url).href
// Resolves what `src` imports of itself as Node does, without asking the file system for each of two thousand
// imports.
registerHooks({
  resolve(specifier, context, next) {
    const parent = context.parentURL
    const url = parent?.startsWith(folder) ? ownUrl(specifier, parent) : undefined
    return url ? { url, format: 'module-typescript', shortCircuit: true } : next(specifier, context)
  },
})

/** The URL of a module of `src`, or undefined if `specifier` names none. */
function ownUrl(specifier, parent) {
  if (specifier.startsWith('#')) return specifier.startsWith('#world/') ? undefined : folder + specifier.slice(1)
  return specifier.startsWith('.') && specifier.endsWith('.ts') ? new URL(specifier, parent).href : undefined
}

await (process.argv[2] === 'agent' ? import('./agent/main.ts') : import('./main.ts'))
