import { mkdirSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { openChain } from './chain.ts'
import { openLedger } from './ledger.ts'
import { serve } from './server.ts'
import { seedTokens } from './tokens.ts'

const saveEveryMs = 1_000

const { values } = parseArgs({
  options: {
    'data-dir': { type: 'string' },
    port: { type: 'string', default: '0' },
    'finality-slots': { type: 'string', default: '32' },
    'watch-stdin': { type: 'boolean', default: false },
  },
})

const integer = (name: string, text: string, max: number): number => {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 0 || value > max) throw new Error(`--${name} must be 0 to ${max}`)
  return value
}

const dataDir = values['data-dir']
if (dataDir === undefined) throw new Error('--data-dir is required')
mkdirSync(dataDir, { recursive: true })
const ledger = openLedger(dataDir)
const finalitySlots = integer('finality-slots', values['finality-slots'], 150)
const chain = openChain({ ledger, finalitySlots, seed: seedTokens })
const { port, server } = await serve(chain, integer('port', values.port, 65_535))

const saving = setInterval(chain.saveIfChanged, saveEveryMs)

let stopping = false
const stop = (): void => {
  if (stopping) return
  stopping = true
  clearInterval(saving)
  server.close()
  server.closeAllConnections()
  chain.save()
  ledger.close()
  process.exit(0)
}
process.once('SIGTERM', stop)
process.once('SIGINT', stop)
if (values['watch-stdin']) process.stdin.once('end', stop).once('close', stop).resume()

process.stdout.write(`${JSON.stringify({ ready: true, port })}\n`)
