/** A schedule from its creation to its end; one run of it, which answers from the operations of the gateway. */
import type { Step } from './door-step.ts'

type Json = Record<string, unknown>

const ofSchedule = ({ schedule_id }: Json): Json => ({ schedule_id })
const ofExecution = ({ execution_id }: Json): Json => ({ execution_id })

export const scheduling: Step[] = [
  {
    name: 'schedules_preview',
    input: { text: 'every Monday at 09:00 what do i hold', timezone: 'Europe/Berlin' },
  },
  {
    name: 'schedules_create',
    input: { query: 'what do i hold on polygon', schedule: 'every Monday at 09:00' },
    // With a key, because a door for models makes one for an act that a repetition would repeat.
    key: 'create-1',
    keep: ({ schedule_id }, known) => Object.assign(known, { schedule_id }),
  },
  {
    name: 'schedules_update',
    input: ({ schedule_id }) => ({ schedule_id, expected_version: 1, schedule: 'every Tuesday at 09:00' }),
  },
  { name: 'schedules_activate', input: ofSchedule },
  { name: 'schedules_pause', input: ofSchedule },
  {
    name: 'schedules_run',
    input: ofSchedule,
    keep: ({ task_id }, known) => Object.assign(known, { execution_id: task_id }),
    key: 'run-1',
  },
  // What the run changes of its schedule is there before it is shown.
  {
    name: 'tasks_list',
    input: { kind: 'schedule_run' },
    until: ({ items }) => (items as { status: string }[])[0]?.status === 'completed',
  },
  { name: 'schedules_all', input: { filter_type: 'paused' } },
  { name: 'schedules_list', input: { status: 'paused' } },
  { name: 'schedules_get', input: ofSchedule },
  { name: 'schedules_executions', input: (known) => ({ ...ofSchedule(known), status: 'failed' }) },
  { name: 'schedules_execution_events', input: (known) => ({ ...ofExecution(known), after: 1_000 }) },
  { name: 'schedules_transactions', input: ofSchedule },
  { name: 'schedules_refresh_recommendations', input: (known) => ({ ...ofSchedule(known), wait: true }) },
  { name: 'schedules_recommendations', input: ofSchedule },
  {
    name: 'schedules_delete_recommendation',
    input: (known) => ({
      ...ofSchedule(known),
      recommendation_id: '01890000-0000-7000-8000-000000000000',
    }),
    fault: 'not_found',
  },
  {
    name: 'schedules_execution',
    input: { execution_id: '01890000-0000-7000-8000-000000000000' },
    fault: 'not_found',
  },
  {
    name: 'schedules_rate',
    input: { execution_id: '01890000-0000-7000-8000-000000000000', rating: 'up' },
    fault: 'not_found',
  },
  { name: 'schedules_disable', input: (known) => ({ ...ofSchedule(known), cancel_running: true }) },
  {
    name: 'schedules_artifacts',
    input: { schedule_id: '01890000-0000-7000-8000-000000000000' },
    fault: 'not_found',
  },
  {
    name: 'schedules_create',
    input: { type: 'day_trade_farming', config: { asset: 'ETH', order_notional_usd: '50' } },
    key: 'create-2',
    keep: ({ schedule_id }, known) => Object.assign(known, { farming_id: schedule_id }),
  },
  { name: 'schedules_day_trade_farming', input: ({ farming_id }) => ({ schedule_id: farming_id }) },
  {
    name: 'schedules_set_day_trade_farming',
    input: ({ farming_id }) => ({
      schedule_id: farming_id,
      enabled: false,
      farming_config: { asset: 'hl:perp:SOL', order_notional_usd: 60, leverage: 2 },
    }),
  },
  {
    name: 'schedules_disable',
    input: ({ farming_id }) => ({ schedule_ids: [farming_id], positions: 'flatten' }),
  },
]
