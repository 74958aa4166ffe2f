import type { MistakeSection } from './mistake.ts'

const unreachable =
  'Input should be an https address with the default port that is reachable from the internet'
const id = '01890000-0000-7000-8000-000000000000'

export const webhooks: MistakeSection = {
  title: 'Webhooks',
  mistakes: [
    {
      mistake: 'An address without TLS',
      send: 'POST /v1/webhooks',
      body: { url: 'http://example.com/events' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.url',
        says: `${unreachable}: only https is fetched`,
      },
    },
    {
      mistake: 'An address of the own network',
      send: 'POST /v1/webhooks',
      body: { url: 'https://192.168.0.10/events' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.url',
        says: `${unreachable}: the address is not public`,
      },
    },
    {
      mistake: 'An address with a port',
      send: 'POST /v1/webhooks',
      body: { url: 'https://example.com:8443/events' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.url',
        says: `${unreachable}: only the default port is fetched`,
      },
    },
    {
      mistake: 'A test of a webhook that does not exist',
      send: `POST /v1/webhooks/${id}/test`,
      answer: {
        status: 404,
        code: 'not_found',
        says: 'There is no such webhook; `webhooks_list` lists those that exist',
      },
    },
  ],
}
