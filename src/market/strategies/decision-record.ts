import { createHash } from 'node:crypto'
import { canonicalJson } from '#kernel/wire/json.ts'
import type { CandleWindow, Windows } from './candle-columns.ts'
import type { Decision, DecisionConfig, StrategyState } from './strategy.ts'

/** The bytes of a decision, the same wherever it is made, and the hash of what it was made from. */

export const decisionText = (decision: Decision): string => canonicalJson(decision)

const columns = [
  'startMs',
  'open',
  'high',
  'low',
  'close',
  'volume',
] as const satisfies (keyof CandleWindow)[]

/** Hashes the arguments of a decision: candles as IEEE 754 numbers, all else as JSON with sorted keys. */
export function inputsSha256(
  windows: Windows | undefined,
  state: StrategyState,
  config: DecisionConfig,
): string {
  const hash = createHash('sha256')
  hash.update(canonicalJson({ config, state }))
  for (const asset of Object.keys(windows ?? {}).sort()) {
    const window = windows?.[asset]
    if (!window) continue
    hash.update(`\n${asset} ${window.spanMs}\n`)
    for (const name of columns) {
      const { buffer, byteOffset, byteLength } = window[name]
      hash.update(new Uint8Array(buffer, byteOffset, byteLength))
    }
  }
  return hash.digest('hex')
}

/** What a decision is stored with, so that it can be decided again. The candles of a window never change. */
export type DecisionInputs = {
  config: DecisionConfig
  state: StrategyState
  windows: Record<string, { span_ms: number; end_ms: number; candles: number }> | null
}

export const recordInputs = (
  windows: Windows | undefined,
  state: StrategyState,
  config: DecisionConfig,
): DecisionInputs => ({
  config,
  state,
  windows: windows
    ? Object.fromEntries(
        Object.entries(windows).map(([asset, { spanMs, endMs, close }]) => [
          asset,
          { span_ms: spanMs, end_ms: endMs, candles: close.length },
        ]),
      )
    : null,
})
