/** What the conformance suite calls by fixed names, added to a door of the product. */

import { setTimeout as delay } from 'node:timers/promises'
import {
  createRequestStateCodec,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { OwnHandlers } from '#edges/mcp/server.ts'
import { addTaskFixtures } from './task-fixtures.ts'

type Json = Record<string, unknown>
type Run = (given: Json, context: ServerContext) => Promise<unknown> | unknown

const text = (words: string) => ({ content: [{ type: 'text', text: words }] })
const image = {
  data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  mimeType: 'image/png',
}
const audio = { data: 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=', mimeType: 'audio/wav' }
const states = createRequestStateCodec<Json>({ key: 'k'.repeat(32) })

const elicit = (message: string, fields: Json) => ({
  method: 'elicitation/create',
  params: {
    message,
    requestedSchema: { type: 'object', properties: fields, required: Object.keys(fields) },
  },
})
const sample = (words: string) => ({
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: { type: 'text', text: words } }], maxTokens: 50 },
})
const roots = { method: 'roots/list', params: {} }
const name = elicit('What is your name?', { name: { type: 'string' } })
const ask = async (inputRequests: Json, state?: Json) => ({
  resultType: 'input_required',
  inputRequests,
  ...(state && { requestState: await states.mint(state) }),
})
const answered = ({ mcpReq }: ServerContext, key: string): Json | undefined =>
  mcpReq.inputResponses?.[key] as Json | undefined
const contentOf = (context: ServerContext, key: string): Json | undefined =>
  answered(context, key)?.content as Json | undefined

async function stateOf(context: ServerContext): Promise<Json> {
  const sent = context.mcpReq.requestState<string>()
  if (typeof sent !== 'string')
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'The state is missing')
  return states.verify(sent, context).catch(() => {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'The state was changed')
  })
}
const capabilitiesOf = ({ mcpReq }: ServerContext): Json => {
  const envelope: Json = { ...mcpReq.envelope }
  return (envelope['io.modelcontextprotocol/clientCapabilities'] ?? {}) as Json
}

async function log(context: ServerContext): Promise<object> {
  for (const line of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
    await context.mcpReq.log('info', line)
    await delay(50)
  }
  return text('Logged')
}

async function confirm(context: ServerContext): Promise<object> {
  const asked = { confirm: elicit('Please confirm', { ok: { type: 'boolean' } }) }
  if (!answered(context, 'confirm')) return ask(asked, { step: 'confirm' })
  await stateOf(context)
  return text('state-ok')
}

/** Nobody answers: the door keeps no session in which an answer could arrive. */
const askMsMax = 200
/** Questions of 2025, which the server sends as requests of its own. */
const elicitForm = async (
  { mcpReq }: ServerContext,
  message: string,
  properties: Json,
  required: string[] = [],
) =>
  mcpReq.send(
    {
      method: 'elicitation/create',
      params: { mode: 'form', message, requestedSchema: { type: 'object', properties, required } },
    },
    { timeout: askMsMax },
  )
const choices = (...values: string[]) => values.map((value) => ({ const: value, title: value.toUpperCase() }))

const tools: Record<string, Run> = {
  test_simple_text: () => text('This is a simple text response for testing.'),
  test_image_content: () => ({ content: [{ type: 'image', ...image }] }),
  test_audio_content: () => ({ content: [{ type: 'audio', ...audio }] }),
  test_embedded_resource: () => ({
    content: [
      {
        type: 'resource',
        resource: {
          uri: 'test://embedded-resource',
          mimeType: 'text/plain',
          text: 'This is an embedded resource content.',
        },
      },
    ],
  }),
  test_multiple_content_types: () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      { type: 'image', ...image },
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: '{"test":"data","value":123}',
        },
      },
    ],
  }),
  test_error_handling: () => ({
    ...text('This tool intentionally returns an error for testing'),
    isError: true,
  }),
  async test_tool_with_progress(_given, { mcpReq }) {
    const progressToken = mcpReq._meta?.progressToken
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await mcpReq.notify({
          method: 'notifications/progress',
          params: { progressToken, progress, total: 100 },
        })
      await delay(50)
    }
    return text('Done')
  },
  test_tool_with_logging: (_given, context) => log(context),
  test_logging_tool: (_given, context) => log(context),
  async test_sampling({ prompt }, { mcpReq }) {
    const reply = await mcpReq.send(
      {
        method: 'sampling/createMessage',
        params: {
          messages: [{ role: 'user', content: { type: 'text', text: String(prompt) } }],
          maxTokens: 100,
        },
      },
      { timeout: askMsMax },
    )
    return text(`LLM response: ${JSON.stringify(reply)}`)
  },
  async test_elicitation({ message }, context) {
    const fields = { username: { type: 'string' }, email: { type: 'string' } }
    return text(
      `User response: ${JSON.stringify(await elicitForm(context, String(message), fields, Object.keys(fields)))}`,
    )
  },
  async test_elicitation_sep1034_defaults(_given, context) {
    const fields = {
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    }
    return text(`Elicitation completed: ${JSON.stringify(await elicitForm(context, 'Defaults', fields))}`)
  },
  async test_elicitation_sep1330_enums(_given, context) {
    const options = ['option1', 'option2', 'option3']
    const fields = {
      untitledSingle: { type: 'string', enum: options },
      titledSingle: { type: 'string', oneOf: choices('value1', 'value2', 'value3') },
      legacyEnum: { type: 'string', enum: ['opt1', 'opt2'], enumNames: ['Option One', 'Option Two'] },
      untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
      titledMulti: { type: 'array', items: { anyOf: choices('value1', 'value2', 'value3') } },
    }
    return text(`Elicitation completed: ${JSON.stringify(await elicitForm(context, 'Enums', fields))}`)
  },
  test_missing_capability(_given, context) {
    if (!('sampling' in capabilitiesOf(context)))
      throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } })
    return text('The client can sample')
  },
  test_streaming_elicitation: (_given, context) =>
    answered(context, 'user_name') ? text('Answered') : ask({ user_name: name }),
  test_input_required_result_elicitation(_given, context) {
    const given = contentOf(context, 'user_name')?.name
    return typeof given === 'string' ? text(`Hello, ${given}!`) : ask({ user_name: name })
  },
  test_input_required_result_sampling: (_given, context) =>
    answered(context, 'capital')
      ? text(JSON.stringify(answered(context, 'capital')))
      : ask({ capital: sample('What is the capital of France?') }),
  test_input_required_result_list_roots: (_given, context) =>
    answered(context, 'client_roots')
      ? text(JSON.stringify(answered(context, 'client_roots')))
      : ask({ client_roots: roots }),
  test_input_required_result_request_state: (_given, context) => confirm(context),
  test_input_required_result_tampered_state: (_given, context) => confirm(context),
  async test_input_required_result_multiple_inputs(_given, context) {
    const asked = { user_name: name, greeting: sample('Generate a greeting'), client_roots: roots }
    if (!Object.keys(asked).every((key) => answered(context, key))) return ask(asked, { step: 'all' })
    await stateOf(context)
    return text('All inputs arrived')
  },
  async test_input_required_result_multi_round(_given, context) {
    const step1 = elicit('Step 1: What is your name?', { name: { type: 'string' } })
    const step2 = elicit('Step 2: What is your favorite color?', { color: { type: 'string' } })
    if (answered(context, 'step2')) {
      const { given } = await stateOf(context)
      return text(`${String(given)} likes ${String(contentOf(context, 'step2')?.color)}`)
    }
    if (!answered(context, 'step1')) return ask({ step1 }, { step: 1 })
    await stateOf(context)
    return ask({ step2 }, { step: 2, given: contentOf(context, 'step1')?.name })
  },
  test_input_required_result_capabilities(_given, context) {
    const declared = capabilitiesOf(context)
    return ask({
      ...('elicitation' in declared && { user_name: name }),
      ...('sampling' in declared && { greeting: sample('Generate a greeting') }),
    })
  },
  json_schema_2020_12_tool: () => text('ok'),
}

const schema2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
}
const toolViews = Object.keys(tools).map((tool) => ({
  name: tool,
  description: `Fixture ${tool}`,
  inputSchema: tool === 'json_schema_2020_12_tool' ? schema2020 : { type: 'object' },
}))

const user = (content: object) => ({ role: 'user', content })
const words = (value: string) => user({ type: 'text', text: value })
const prompts: Record<string, { arguments?: string[]; run: Run }> = {
  test_simple_prompt: { run: () => ({ messages: [words('This is a simple prompt for testing.')] }) },
  test_prompt_with_arguments: {
    arguments: ['arg1', 'arg2'],
    run: ({ arg1, arg2 }) => ({ messages: [words(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)] }),
  },
  test_prompt_with_embedded_resource: {
    arguments: ['resourceUri'],
    run: ({ resourceUri: uri }) => ({
      messages: [
        user({
          type: 'resource',
          resource: { uri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
        }),
        words('Please process the embedded resource above.'),
      ],
    }),
  },
  test_prompt_with_image: {
    run: () => ({ messages: [user({ type: 'image', ...image }), words('Please analyze the image above.')] }),
  },
  test_input_required_result_prompt: {
    run: (_given, context) =>
      answered(context, 'user_context')
        ? { messages: [words(`With ${String(contentOf(context, 'user_context')?.context)}`)] }
        : ask({
            user_context: elicit('What context should the prompt use?', { context: { type: 'string' } }),
          }),
  },
}

const resources = [
  { uri: 'test://static-text', name: 'text', mimeType: 'text/plain' },
  { uri: 'test://static-binary', name: 'binary', mimeType: 'image/png' },
  { uri: 'test://watched-resource', name: 'watched', mimeType: 'text/plain' },
]

function resourceAt(uri: string): object | undefined {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
  if (id !== undefined)
    return {
      uri,
      mimeType: 'application/json',
      text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
    }
  const known = resources.find((each) => each.uri === uri)
  if (!known) return undefined
  const { mimeType } = known
  return mimeType === 'image/png'
    ? { uri, mimeType, blob: image.data }
    : { uri, mimeType, text: 'This is the content of the static text resource.' }
}

/** Fixtures beside what the door serves itself. */
export function addFixtures(server: Server, product: OwnHandlers): void {
  const own = addTaskFixtures(server, product)
  server.registerCapabilities({ logging: {}, completions: {}, resources: { subscribe: true } })
  server.setRequestHandler('tools/list', async (request, context) => ({
    tools: [...(await own.listTools(request, context)).tools, ...(toolViews as never[])],
  }))
  server.setRequestHandler('tools/call', async (request, context) => {
    const run = tools[request.params.name]
    return run
      ? ((await run(request.params.arguments ?? {}, context)) as never)
      : own.callTool(request, context)
  })
  const promptViews = Object.entries(prompts).map(([prompt, each]) => ({
    name: prompt,
    description: `Fixture ${prompt}`,
    arguments: (each.arguments ?? []).map((argument) => ({ name: argument, required: true })),
  }))
  server.setRequestHandler('prompts/list', (request, context) => ({
    prompts: [...own.listPrompts(request, context).prompts, ...promptViews],
  }))
  server.setRequestHandler('prompts/get', async (request, context) => {
    const found = prompts[request.params.name]
    return found
      ? ((await found.run(request.params.arguments ?? {}, context)) as never)
      : own.getPrompt(request, context)
  })
  server.setRequestHandler('resources/list', () => ({
    resources: [...own.listResources().resources, ...resources],
  }))
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template' }],
  }))
  server.setRequestHandler('resources/read', async (request, context) => {
    const { uri } = request.params
    if (!uri.startsWith('test:')) return own.readResource(request, context)
    const found = resourceAt(uri)
    if (!found) throw new ResourceNotFoundError(uri)
    return { contents: [found as never] }
  })
  server.setRequestHandler('resources/subscribe', () => ({}))
  server.setRequestHandler('resources/unsubscribe', () => ({}))
  server.setRequestHandler('completion/complete', () => ({
    completion: { values: ['paris', 'park'], total: 2, hasMore: false },
  }))
}
