/** Failures of a public node on an ordinary day. Rates are shares of the requests, from 0 to 1. */
export type Preset = {
  name: 'realistic'
  seed: number
  /** Share of requests that reach a node which learns of blocks `lagMs` later than its siblings. */
  lagRate: number
  lagMs: number
  /** Share of sent transactions whose block is removed; they are mined again after up to `vanishedMsMax`. */
  reorgRate: number
  vanishedMsMax: number
  /** Share of Solana transactions that a lagging node rejects for an unknown blockhash. */
  unknownBlockhashRate: number
  /** Share of Solana transactions that are shown as confirmed on a fork that is then abandoned. */
  droppedRate: number
  droppedMsMax: number
  busyRate: number
  htmlRate: number
  lostReplyRate: number
  slowRate: number
  slowMsMax: number
}

export const presetNames = ['quiet', 'realistic'] as const
export type PresetName = (typeof presetNames)[number]

export const realistic = (seed: number): Preset => ({
  name: 'realistic',
  seed,
  lagRate: 0.3,
  lagMs: 2_000,
  reorgRate: 0.03,
  vanishedMsMax: 1_200,
  unknownBlockhashRate: 0.03,
  droppedRate: 0.02,
  droppedMsMax: 2_000,
  busyRate: 0.015,
  htmlRate: 0.005,
  lostReplyRate: 0.003,
  slowRate: 0.15,
  slowMsMax: 200,
})
