import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** A transaction with the time of its slot, or the signature of the faucet's grant under an id. */
export type Call = { atMs: number; wire: Uint8Array } | { mint: string; signature: string }
type JournalLine = { atMs: number; wire: string } | { mint: string; signature: string }

export type CallJournal = ReturnType<typeof openCallJournal>

/**
 * Transactions since the last save, written before they are acknowledged. Not synced: this protects against the death
 * of this process, not of the machine.
 */
export const openCallJournal = (dataDir: string) => {
  const path = join(dataDir, 'calls.jsonl')
  const log = openSync(path, 'a', 0o600)

  const read = (): Call[] =>
    readFileSync(path, 'utf8')
      .split('\n')
      .flatMap((text): Call[] => {
        if (text === '') return []
        try {
          const line = JSON.parse(text) as JournalLine
          return 'mint' in line ? [line] : [{ atMs: line.atMs, wire: Buffer.from(line.wire, 'base64') }]
        } catch {
          // The incomplete last line of a killed process: that call was not acknowledged.
          return []
        }
      })

  let completeText: string[] | undefined
  const write = (text: string): void => {
    if (completeText) completeText.push(text)
    else writeSync(log, text)
  }

  return {
    read,
    /** Entries that are added meanwhile are written at once, so that a kill leaves all of them or none. */
    batch: <T>(run: () => T): T => {
      completeText = []
      try {
        return run()
      } finally {
        const texts = completeText
        completeText = undefined
        if (texts.length > 0) write(texts.join(''))
      }
    },
    add: (call: Call): void => {
      const line: JournalLine =
        'mint' in call ? call : { atMs: call.atMs, wire: Buffer.from(call.wire).toString('base64') }
      write(`\n${JSON.stringify(line)}\n`)
    },
    /** The ledger contains everything by now. */
    clear: (): void => ftruncateSync(log, 0),
    close: (): void => closeSync(log),
  }
}
