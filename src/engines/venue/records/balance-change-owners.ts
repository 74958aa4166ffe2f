import { adoptedKind } from '#store/record-found-effect.ts'

/** These fragments of SQL select the changes of a holding, each with its owner. $1 is the user, $2 the venue. */

/** Joins the run `e` that owns a task `t`. A sale by a trigger of the gateway belongs to the task that set the trigger. */
export const ownerJoins = `left join trigger_order g on t.kind = 'spot_trigger' and g.id = (t.data ->> 'trigger_order_id')::uuid
      left join task source on source.id = g.source_task_id
      left join strategy_execution e on e.id = coalesce(source.parent_id, t.parent_id)`
/**
 * The owner of a change: the id of the schedule whose run made it, or `other`. It is `unknown` if the rows that showed
 * the owner were deleted.
 */
export const ownerOf = `case when e.id is not null then e.strategy_id::text
      when t.id is null or t.kind = '${adoptedKind}' or (t.kind = 'spot_trigger' and source.id is null)
        or coalesce(source.parent_id, t.parent_id) is not null then 'unknown'
      else 'other' end`

type Span = { afterMs: string; untilMs: string; balanceKey?: string }

/**
 * Selects the changes of holdings within a span of time, each with its owner. The fills are a range of
 * venue_fill_by_time, and each finds its order, task and run by their ids.
 */
export const changesSql = ({ afterMs, untilMs, balanceKey }: Span) => {
  const span = (row: string) =>
    `${row}.user_id = $1 and ${row}.venue = $2 and ${row}.at_ms > ${afterMs} and ${row}.at_ms <= ${untilMs}`
  const only = balanceKey === undefined ? 'is not null' : `= ${balanceKey}`
  return `
    select b.balance_key, b.change, f.at_ms, f.trade_id, ${ownerOf} as owner
    from venue_fill f cross join lateral (select
        case when f.base is null then 'position:' || f.symbol else 'spot:' || f.base end as balance_key,
        f.signed_size - case when f.fee_token = f.base then f.fee else 0 end as change) b
      left join venue_order o on o.cloid = f.cloid and o.user_id = f.user_id left join task t on t.id = o.task_id
      ${ownerJoins}
    where ${span('f')} and b.balance_key ${only}
    union all
    select l.balance_key, l.amount, l.at_ms, null, case when l.reason is null then 'other' else 'unknown' end
    from venue_ledger_entry l where ${span('l')} and l.balance_key ${only}`
}
