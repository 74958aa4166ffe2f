import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { BuilderFee } from '#kernel/money/builder-fee.ts'
import type { TakerFee } from '#kernel/money/prediction-views.ts'
import { zero32 } from './contracts.ts'
import type { Requests } from './requests.ts'
import { BuilderFees } from './wire-clob.ts'

/**
 * The fee of the builder whose code the orders name, which the venue takes on top of its own. The venue announces a
 * change days before. https://docs.polymarket.com/builders/fees
 */

const freshMs = 600_000
/** The venue allows 100, and this leaves it room to allow more. */
const bpsMax = 1_000

export type AddBuilderFee = (fee: TakerFee | null) => Promise<TakerFee | null>

export function createBuilderFees(
  { read }: Pick<Requests, 'read'>,
  { builderCode, clock }: { builderCode: string; clock: Clock },
): AddBuilderFee {
  let known: { builder: BuilderFee; atMs: number } | undefined
  const current = async (): Promise<BuilderFee> => {
    const nowMs = clock.now().getTime()
    if (known && nowMs - known.atMs < freshMs) return known.builder
    const path = `/fees/builder-fees/${builderCode}`
    const fees = await read({ service: 'clob', path }, BuilderFees)
    const builder = {
      takerBps: bpsOf(fees.builder_taker_fee_rate_bps),
      makerBps: bpsOf(fees.builder_maker_fee_rate_bps),
    }
    known = { builder, atMs: nowMs }
    return builder
  }
  return async (fee) => {
    if (builderCode === zero32) return fee
    const builder = await current()
    if (builder.takerBps + builder.makerBps === 0) return fee
    return { rate: '0', exponent: '0', ...fee, builder }
  }
}

function bpsOf(wire: string | number): number {
  const bps = Number(wire)
  if (Number.isInteger(bps) && bps >= 0 && bps <= bpsMax) return bps
  throw new Fault('upstream_changed', 'Polymarket named a fee of the builder that is none')
}
