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
// Resolves `src` as `imports` of package.json does, without consulting that file for each of a thousand
// imports.
registerHooks({
  resolve(specifier, context, next) {
    const isOurs = specifier.startsWith('#') && !specifier.startsWith('#world/')
    if (!isOurs || !context.parentURL?.startsWith(folder)) return next(specifier, context)
    return { url: folder + specifier.slice(1), format: 'module-typescript', shortCircuit: true }
  },
})

await (process.argv[2] === 'agent' ? import('./agent/main.ts') : import('./main.ts'))
