import type { MistakeSection } from './mistake.ts'

export const addresses: MistakeSection = {
  title: 'Paths and methods',
  mistakes: [
    {
      mistake: 'Singular for plural',
      send: 'GET /v1/perp/order',
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such path; did you mean GET /v1/perp/orders?',
      },
    },
    {
      mistake: 'No version in the path',
      send: 'GET /perp/markets',
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such path; did you mean GET /v1/perp/markets?',
      },
    },
    {
      mistake: 'Another version',
      send: 'GET /v2/wallets',
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such path; did you mean GET /v1/wallets?',
      },
    },
    {
      mistake: 'Upper case',
      send: 'GET /V1/Holdings',
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such path; did you mean GET /v1/holdings?',
      },
    },
    {
      mistake: 'A section is missing',
      send: 'GET /v1/positions',
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such path; did you mean GET /v1/earn/positions?',
      },
    },
    {
      mistake: 'A hyphen for an underscore',
      send: 'POST /v1/spot-venue/buy',
      body: {},
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such path; did you mean POST /v1/spot_venue/buy?',
      },
    },
    {
      mistake: 'A prefix of a gateway',
      send: 'GET /api/v1/credits',
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such path; did you mean GET /v1/credits?',
      },
    },
    {
      mistake: 'Two letters swapped',
      send: 'POST /v1/perp/opne',
      body: {},
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such path; did you mean POST /v1/perp/open?',
      },
    },
    {
      mistake: 'A path of another service',
      send: 'GET /fapi/v1/exchangeInfo',
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such path; /openapi.json lists every path',
      },
    },
    {
      mistake: 'GET where something is changed',
      send: 'GET /v1/perp/open',
      answer: { status: 405, code: 'method_not_allowed', says: 'This path does not take GET: send POST' },
    },
    {
      mistake: 'POST where something is read',
      send: 'POST /v1/holdings',
      body: {},
      answer: { status: 405, code: 'method_not_allowed', says: 'This path does not take POST: send GET' },
    },
    {
      mistake: 'DELETE to cancel a task',
      send: 'DELETE /v1/tasks/{task}',
      answer: {
        status: 405,
        code: 'method_not_allowed',
        says: 'This path does not take DELETE: send GET or POST /v1/tasks/{task_id}/cancel',
      },
    },
    {
      mistake: 'PATCH for PUT',
      send: 'PATCH /v1/policy',
      body: {},
      answer: {
        status: 405,
        code: 'method_not_allowed',
        says: 'This path does not take PATCH: send GET or PUT',
      },
    },
    {
      mistake: 'A placeholder that was not filled in',
      send: 'GET /v1/tasks/%7Btask_id%7D',
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such task; `tasks_list` lists those that exist',
      },
    },
    {
      mistake: 'A path that cannot be decoded',
      send: 'GET /v1/tasks/%zz',
      answer: {
        status: 400,
        code: 'bad_request',
        says: 'The request cannot be read: check the request line, the headers, and that each % of the path is followed by two hexadecimal digits',
      },
    },
    {
      mistake: 'Headers larger than any credential',
      send: 'GET /v1/user',
      headers: { cookie: '{long_text}' },
      shown: 'GET /v1/user with 17 KB of cookies',
      answer: {
        status: 431,
        code: 'headers_too_large',
        says: 'The headers are over the limit of 16 KiB: send fewer or shorter ones',
      },
    },
  ],
}
