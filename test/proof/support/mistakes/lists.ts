import type { MistakeSection } from './mistake.ts'

export const lists: MistakeSection = {
  title: 'Lists, pages and events',
  mistakes: [
    {
      mistake: 'A limit of nothing',
      send: 'GET /v1/tasks?limit=0',
      answer: {
        status: 422,
        code: 'validation',
        at: 'query.limit',
        says: 'Input should be greater than or equal to 1',
      },
    },
    {
      mistake: 'A limit over the maximum',
      send: 'GET /v1/tasks?limit=1000',
      answer: {
        status: 422,
        code: 'validation',
        at: 'query.limit',
        says: 'Input should be less than or equal to 100',
      },
    },
    {
      mistake: 'A negative start',
      send: 'GET /v1/tasks?skip=-1',
      answer: {
        status: 422,
        code: 'validation',
        at: 'query.skip',
        says: 'Input should be greater than or equal to 0',
      },
    },
    {
      mistake: 'offset for skip',
      send: 'GET /v1/notifications?offset=10',
      answer: {
        status: 422,
        code: 'validation',
        at: 'query.offset',
        says: 'Extra inputs are not permitted; the fields are `after`, `skip`, `limit`, `types`, `task_id`',
      },
    },
    {
      mistake: 'Page numbers',
      send: 'GET /v1/tasks?page=2',
      answer: {
        status: 422,
        code: 'validation',
        at: 'query.page',
        says: 'Extra inputs are not permitted; the fields are `skip`, `limit`, `status`, `kind`, `parent_task_id`, `chats`, `for_agent`',
      },
    },
    {
      mistake: 'A status of another vocabulary',
      send: 'GET /v1/tasks?status=done',
      answer: {
        status: 422,
        code: 'validation',
        at: 'query.status',
        says: "Input should be 'pending', 'running', 'completed', 'failed' or 'cancelled'",
      },
    },
    {
      mistake: 'A status in title case',
      send: 'GET /v1/tasks?status=Completed',
      answer: {
        status: 422,
        code: 'validation',
        at: 'query.status',
        says: "Input should be 'pending', 'running', 'completed', 'failed' or 'cancelled'; did you mean 'completed'?",
      },
    },
    {
      mistake: 'A kind that there is not',
      send: 'GET /v1/tasks?kind=earn_deposits',
      answer: {
        status: 422,
        code: 'validation',
        at: 'query.kind',
        says: 'There is no such kind of task; did you mean earn_deposit?',
      },
    },
    {
      mistake: 'A cursor of another list',
      send: 'GET /v1/earn/positions?after=42',
      answer: {
        status: 422,
        code: 'validation',
        at: 'query.after',
        says: 'Input should be a valid UUID, such as 0198c5f6-6a0e-7c1e-9d43-5f0f6c7a2b11',
      },
    },
    {
      mistake: 'A cursor that is no number',
      send: 'GET /v1/notifications?after=latest',
      answer: {
        status: 422,
        code: 'validation',
        at: 'query.after',
        says: "String has the wrong form: Sequence number after which to begin, such as '42'",
      },
    },
    {
      mistake: 'A misspelt event type',
      send: 'GET /v1/notifications?types=order.fill',
      answer: {
        status: 422,
        code: 'validation',
        at: 'query.types',
        says: "'order.fill' is not an event type. Did you mean 'order.filled'? Valid types: task.created, task.updated, task.completed, task.failed, task.cancelled, order.filled, order.rejected, order.cancelled, position.changed, position.liquidated, funding.paid, venue.key_renewed, hook.created, hook.triggered, hook.attempt_failed, hook.filled, hook.failed, hook.cancelled, hook.expired, limit_order.created, limit_order.triggered, limit_order.attempt_failed, limit_order.executed, limit_order.failed, limit_order.cancelled, limit_order.expired, swap.late_payment, schedule.run_started, schedule.run_finished, schedule.run_skipped, schedule.paused, schedule.guard_tripped, approval.requested, approval.decided, approval.expired, approval.cancelled, policy.changed, agent.linked, agent.unlinked, agent.link_contested, agent.link_accepted, app.credits_changed, subscription.started, subscription.renewed, subscription.changed, subscription.payment_failed, subscription.cancelled, subscription.resumed, subscription.ended, subscription.credits_changed, subscription.duplicate_refunded, predmkt.trade.matched, predmkt.trade.confirmed, predmkt.trade.failed, predmkt.order.cancelled_by_venue, predmkt.exit.cancelled, predmkt.exit.held_back, security.flagged, webhook.created, webhook.updated, webhook.deleted, webhook.disabled",
      },
    },
    {
      mistake: 'A misspelt event type on the stream',
      send: 'GET /v1/notifications/stream?types=tasks.completed',
      answer: {
        status: 422,
        code: 'validation',
        at: 'query.types',
        says: "'tasks.completed' is not an event type. Did you mean 'task.completed'? Valid types: task.created, task.updated, task.completed, task.failed, task.cancelled, order.filled, order.rejected, order.cancelled, position.changed, position.liquidated, funding.paid, venue.key_renewed, hook.created, hook.triggered, hook.attempt_failed, hook.filled, hook.failed, hook.cancelled, hook.expired, limit_order.created, limit_order.triggered, limit_order.attempt_failed, limit_order.executed, limit_order.failed, limit_order.cancelled, limit_order.expired, swap.late_payment, schedule.run_started, schedule.run_finished, schedule.run_skipped, schedule.paused, schedule.guard_tripped, approval.requested, approval.decided, approval.expired, approval.cancelled, policy.changed, agent.linked, agent.unlinked, agent.link_contested, agent.link_accepted, app.credits_changed, subscription.started, subscription.renewed, subscription.changed, subscription.payment_failed, subscription.cancelled, subscription.resumed, subscription.ended, subscription.credits_changed, subscription.duplicate_refunded, predmkt.trade.matched, predmkt.trade.confirmed, predmkt.trade.failed, predmkt.order.cancelled_by_venue, predmkt.exit.cancelled, predmkt.exit.held_back, security.flagged, webhook.created, webhook.updated, webhook.deleted, webhook.disabled",
      },
    },
    {
      mistake: 'A Last-Event-ID of another stream',
      send: 'GET /v1/notifications/stream',
      headers: { 'last-event-id': 'chat:7' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'header.Last-Event-ID',
        says: 'Input should be the id of an event of this stream, such as 42; without it the last 50 events come first',
      },
    },
    {
      mistake: 'A chain for a chain type',
      send: 'GET /v1/holdings?chain_type=ethereum',
      answer: {
        status: 422,
        code: 'validation',
        at: 'query.chain_type',
        says: "Input should be 'evm', 'solana', '0' or '1'",
      },
    },
    {
      mistake: 'A parameter where there is none',
      send: 'GET /v1/user?verbose=1',
      answer: {
        status: 422,
        code: 'validation',
        at: 'query.verbose',
        says: 'Extra inputs are not permitted; there are no fields here',
      },
    },
    {
      mistake: 'A search in another word',
      send: 'GET /v1/perp/markets?search=BTC',
      answer: {
        status: 422,
        code: 'validation',
        at: 'query.search',
        says: 'Extra inputs are not permitted; did you mean `search_text`?',
      },
    },
  ],
}
