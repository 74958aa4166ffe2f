import { mkdirSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { useCompileCache } from '#world/compile-cache.ts'

useCompileCache()
const { openCallJournal } = await import('./call-journal.ts')
const { openChain } = await import('./chain.ts')
const { openVaultAccounts } = await import('./depository-vault.ts')
const { openLedger } = await import('./ledger.ts')
const { serve } = await import('./server.ts')
const { fundSponsors } = await import('./sponsors.ts')
const { seedTokens } = await import('./tokens.ts')

const { values } = parseArgs({
  options: {
    'data-dir': { type: 'string' },
    'compile-cache': { type: 'string' },
    port: { type: 'string', default: '0' },
    'finality-slots': { type: 'string', default: '32' },
    'save-every-ms': { type: 'string', default: '1000' },
    'watch-stdin': { type: 'boolean', default: false },
  },
})

const integer = (name: 'port' | 'finality-slots' | 'save-every-ms', min: number, max: number): number => {
  const value = Number(values[name])
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new Error(`--${name} must be ${min} to ${max}`)
}

const dataDir = values['data-dir']
if (dataDir === undefined) throw new Error('--data-dir is required')
mkdirSync(dataDir, { recursive: true })
const ledger = openLedger(dataDir)
const finalitySlots = integer('finality-slots', 0, 150)
const journal = openCallJournal(dataDir)
const chain = openChain({ ledger, journal, finalitySlots, seed: seedTokens })
fundSponsors(chain)
openVaultAccounts(chain)
const { port, server } = await serve(chain, integer('port', 0, 65_535))

const saving = setInterval(chain.saveIfChanged, integer('save-every-ms', 50, 600_000))

let stopping = false
const stop = (): void => {
  if (stopping) return
  stopping = true
  clearInterval(saving)
  server.close()
  server.closeAllConnections()
  chain.save()
  ledger.close()
  journal.close()
  process.exit(0)
}
process.on('SIGTERM', stop)
process.on('SIGINT', stop)
if (values['watch-stdin']) process.stdin.once('end', stop).once('close', stop).resume()

process.stdout.write(`${JSON.stringify({ ready: true, port })}\n`)
