import { Fault } from '#kernel/contract/fault.ts'
import { fits } from '#kernel/contract/fits-schema.ts'
import type * as T from '#kernel/contract/schema.ts'
import type { Paged, PredictionVenue, VenueActivity, VenuePosition } from '#kernel/money/prediction-venue.ts'
import { amountOf, dateOf, required, requiredUnits, unitsOf, type WireNumber } from './decimals.ts'
import { hashesOf, labelMax, lineOf, titleMax } from './foreign-text.ts'
import { type OnSkipped, venueName } from './parse-markets.ts'
import type { Call, Requests } from './requests.ts'
import { ActivityV1, ActivityV2, DataList, DataPage, PositionV1, PositionV2 } from './wire-data.ts'

/**
 * Positions and activity of wallets by the public record. The first form is asked for where the venue does not have the
 * second one; its cursors are offsets and have a prefix, so that a list is continued in the form in which it began.
 */

const offsetPrefix = 'offset:'
const pageSize = 500

type Fields = Record<string, string | undefined>
type List<Row> = {
  path: string
  query: Fields
  v1Query: Fields
  limit: number
  parse(record: unknown): Row | undefined
}

type CommonPosition = {
  outcomeId: string
  marketId: string
  size: WireNumber
  average: WireNumber
  price: WireNumber
  cost: WireNumber | null | undefined
  value: WireNumber
  realized: WireNumber | null | undefined
  isNegRisk: boolean
  eventSlug: string | null | undefined
  endDate: string | null | undefined
}

const positionOf = (
  record: T.Static<typeof PositionV1> | T.Static<typeof PositionV2>,
  common: CommonPosition,
): VenuePosition => ({
  venue: venueName,
  marketId: common.marketId,
  outcomeId: common.outcomeId,
  sizeUnits: required(amountOf(common.size), 'size'),
  averagePriceMicros: requiredUnits(common.average, 'price'),
  priceMicros: requiredUnits(common.price, 'price'),
  costUnits: unitsOf(common.cost) ?? 0n,
  valueUnits: requiredUnits(common.value, 'value'),
  realizedUnits: unitsOf(common.realized) ?? 0n,
  isRedeemable: record.redeemable === true,
  isMergeable: record.mergeable === true,
  isNegRisk: common.isNegRisk,
  outcome: lineOf(record.outcome ?? '', labelMax),
  title: lineOf(record.title ?? '', titleMax),
  slug: record.slug ?? '',
  eventSlug: common.eventSlug ?? '',
  endsAt: dateOf(common.endDate),
})

function parsePosition(record: unknown): VenuePosition | undefined {
  if (fits(PositionV2, record))
    return positionOf(record, {
      outcomeId: record.token_id,
      marketId: record.condition_id,
      size: record.current_size,
      average: record.avg_price,
      price: record.current_price,
      cost: record.entry_cost_usdc,
      value: record.current_value,
      realized: record.realized_pnl,
      isNegRisk: record.negative_risk === true,
      eventSlug: record.event_slug,
      endDate: record.end_date,
    })
  if (!fits(PositionV1, record)) return undefined
  return positionOf(record, {
    outcomeId: record.asset,
    marketId: record.conditionId,
    size: record.size,
    average: record.avgPrice,
    price: record.curPrice,
    cost: record.initialValue,
    value: record.currentValue,
    realized: record.realizedPnl,
    isNegRisk: record.negativeRisk === true,
    eventSlug: record.eventSlug,
    endDate: record.endDate,
  })
}

type CommonActivity = {
  marketId: string | null | undefined
  outcomeId: string | null | undefined
  cash: WireNumber
  txHash: string | null | undefined
}

function activityOf(
  record: T.Static<typeof ActivityV1> | T.Static<typeof ActivityV2>,
  { marketId, outcomeId, cash, txHash }: CommonActivity,
): VenueActivity | undefined {
  const at = dateOf(record.timestamp)
  if (!at) return undefined
  const side = record.side?.toLowerCase()
  return {
    venue: venueName,
    marketId: marketId ?? '',
    outcomeId: outcomeId ?? '',
    type: record.type.toLowerCase(),
    side: side === 'buy' || side === 'sell' ? side : null,
    sizeUnits: required(amountOf(record.size), 'size'),
    cashUnits: requiredUnits(cash, 'amount'),
    priceMicros: unitsOf(record.price) ?? 0n,
    outcome: lineOf(record.outcome ?? '', labelMax),
    title: lineOf(record.title ?? '', titleMax),
    txHash: hashesOf([txHash ?? ''])[0] ?? null,
    at,
  }
}

function parseActivity(record: unknown): VenueActivity | undefined {
  if (fits(ActivityV2, record))
    return activityOf(record, {
      marketId: record.condition_id,
      outcomeId: record.token_id,
      cash: record.usdc_size,
      txHash: record.transaction_hash,
    })
  if (!fits(ActivityV1, record)) return undefined
  return activityOf(record, {
    marketId: record.conditionId,
    outcomeId: record.asset,
    cash: record.usdcSize,
    txHash: record.transactionHash,
  })
}

/** A row with a figure that is none must not hide the others. */
function readable<Row>(parse: () => Row | undefined): Row | undefined {
  try {
    return parse()
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

export function createPublicRecord(
  { read, readOptional }: Requests,
  onSkipped: OnSkipped,
): Pick<PredictionVenue, 'positions' | 'activity'> {
  const data = (path: string, query: Fields): Call => ({ service: 'data', path, query })

  function parseAll<Row>({ path, parse }: List<Row>, records: readonly unknown[]): Row[] {
    return records.flatMap((record) => {
      const row = readable(() => parse(record))
      if (row === undefined) onSkipped(path, record)
      return row ?? []
    })
  }

  async function v1Page<Row>(list: List<Row>, offset: number): Promise<Paged<Row>> {
    const query = { ...list.v1Query, limit: String(list.limit), offset: String(offset) }
    const records = await read(data(list.path, query), DataList)
    const nextCursor = records.length < list.limit ? null : `${offsetPrefix}${offset + list.limit}`
    return { items: parseAll(list, records), nextCursor }
  }

  async function page<Row>(list: List<Row>, cursor: string | undefined): Promise<Paged<Row>> {
    if (cursor?.startsWith(offsetPrefix)) {
      const offset = Number(cursor.slice(offsetPrefix.length))
      if (!Number.isSafeInteger(offset) || offset < 0)
        throw new Fault('validation', 'The cursor is none of this list', {
          extras: { reason: 'cursor_invalid' },
        })
      return v1Page(list, offset)
    }
    const query = { ...list.query, limit: String(list.limit), cursor }
    const found = await readOptional(data(`/v2${list.path}`, query), DataPage)
    if (!found && cursor === undefined) return v1Page(list, 0)
    if (!found) throw new Fault('upstream_rejected', 'Polymarket does not continue this list')
    const { has_more, next_cursor } = found.pagination
    return {
      items: parseAll(list, found.data),
      nextCursor: has_more === false ? null : (next_cursor ?? null),
    }
  }

  return {
    positions(wallet, cursor) {
      const list: List<VenuePosition> = {
        path: '/positions',
        query: { user: wallet },
        v1Query: { user: wallet, sizeThreshold: '0' },
        limit: pageSize,
        parse: parsePosition,
      }
      return page(list, cursor)
    },
    activity(wallet, limit, cursor) {
      const list: List<VenueActivity> = {
        path: '/activity',
        query: { user: wallet, exclude_deposits_withdrawals: 'false' },
        v1Query: { user: wallet, excludeDepositsWithdrawals: 'false' },
        limit: Math.min(limit, pageSize),
        parse: parseActivity,
      }
      return page(list, cursor)
    },
  }
}
