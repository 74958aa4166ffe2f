import type { MistakeSection } from './mistake.ts'

export const objects: MistakeSection = {
  title: 'Ids and states',
  mistakes: [
    {
      mistake: 'A task that does not exist',
      send: 'GET /v1/tasks/0198c5f6-6a0e-7c1e-9d43-5f0f6c7a2b11',
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such task; `tasks_list` lists those that exist',
      },
    },
    {
      mistake: 'A task of another user',
      send: 'GET /v1/tasks/{foreign_task}',
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such task; `tasks_list` lists those that exist',
      },
    },
    {
      mistake: 'An id that is none',
      send: 'GET /v1/tasks/42',
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such task; `tasks_list` lists those that exist',
      },
    },
    {
      mistake: 'Cancelling a task that has ended',
      send: 'POST /v1/tasks/{task}/cancel',
      answer: {
        status: 409,
        code: 'not_cancellable',
        says: 'The task cannot be cancelled: it has ended; `tasks_get` has its outcome',
      },
    },
    {
      mistake: 'A position that does not exist',
      send: 'POST /v1/earn/withdraw',
      body: { position_id: '0198c5f6-6a0e-7c1e-9d43-5f0f6c7a2b11' },
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such position; `earn_positions` lists those that exist',
      },
    },
    {
      mistake: 'A position of another user',
      send: 'POST /v1/earn/withdraw',
      body: { position_id: '{foreign_position}' },
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such position; `earn_positions` lists those that exist',
      },
    },
    {
      mistake: 'The task id for the position',
      send: 'POST /v1/earn/withdraw',
      body: { position_id: '{task}' },
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such position; `earn_positions` lists those that exist',
      },
    },
    {
      mistake: 'A number for an id',
      send: 'POST /v1/earn/withdraw',
      body: { position_id: 42 },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.position_id',
        says: 'Input should be a valid string: text in double quotes',
      },
    },
    {
      mistake: 'An order that does not exist',
      send: 'POST /v1/perp/orders/cancel',
      body: { order_id: '123456789012' },
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such order; `perp_orders` lists those that exist',
      },
    },
    {
      mistake: 'An order that has ended',
      send: 'POST /v1/perp/orders/cancel',
      body: { order_id: '{ended_order}' },
      answer: {
        status: 409,
        code: 'order_not_cancellable',
        says: 'The order cannot be cancelled: its status is canceled; `perp_orders` lists the open ones',
      },
    },
    {
      mistake: 'Two ids of one order',
      send: 'POST /v1/perp/orders/cancel',
      body: { order_id: '1', oid: '1' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.order_id',
        says: 'Exactly one of `order_id` and `oid` is required: leave one of them out',
      },
    },
    {
      mistake: 'No id of an order',
      send: 'POST /v1/spot_venue/orders/cancel',
      body: { asset: 'HYPE' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.order_id',
        says: 'Exactly one of `order_id` and `oid` is required: add one of them',
      },
    },
  ],
}
