-- Plans that are paid for at a payment provider: checkouts, subscriptions, their paid invoices and the credits of each.

-- One row per intent of a client. Its pages are opened one after another, each under a provider key of its own.
create table plan_checkout (
  id uuid primary key,
  user_id uuid not null,
  intent uuid not null,
  price_id text not null,
  -- `new`: a checkout; `change`: the page that confirms another price of the subscription.
  mode text not null check (mode in ('new', 'change')),
  -- Number of the page, which is part of the provider's idempotency key; stored before the page is asked for.
  page integer not null check (page > 0),
  -- When this page ends; the provider gets the same time.
  expires_at timestamptz not null,
  -- The provider's session and its address; null until the provider has answered.
  session_id text,
  url text,
  -- `opening`: asked for, and perhaps made; `open`: the payer may pay; `complete`: paid; `expired`: it ended unpaid.
  state text not null check (state in ('opening', 'open', 'complete', 'expired')),
  created_at timestamptz not null,
  unique (user_id, intent),
  constraint open_checkout_has_a_page check (state = 'opening' or (session_id is not null and url is not null))
);
create unique index plan_checkout_session on plan_checkout (session_id) where session_id is not null;
create index plan_checkout_live on plan_checkout (user_id) where state in ('opening', 'open');
create index plan_checkout_unpaid on plan_checkout (expires_at) where state <> 'complete';
create index plan_checkout_paid on plan_checkout (expires_at) where state = 'complete';

-- The order of readings of the provider: a reading that began earlier never replaces a later one.
create sequence plan_reading_seq;

-- Subscriptions as the provider showed them last.
create table plan_subscription (
  -- The provider's id.
  id text primary key,
  user_id uuid not null,
  customer_id text not null,
  item_id text not null,
  price_id text not null,
  -- The provider's word.
  status text not null,
  -- `main`: the user's plan; `duplicate`: paid beside another one, so that it is cancelled and refunded.
  role text not null check (role in ('main', 'duplicate')),
  current_period_end timestamptz not null,
  cancel_at_period_end boolean not null,
  created_at timestamptz not null,
  ended_at timestamptz,
  -- From plan_reading_seq.
  reading bigint not null
);
create unique index plan_subscription_main on plan_subscription (user_id) where role = 'main' and ended_at is null;
create index plan_subscription_of_user on plan_subscription (user_id, created_at desc);

-- Invoices of subscriptions. Credits are granted once, when an invoice of the main subscription is paid.
create table plan_invoice (
  -- The provider's id.
  id text primary key,
  subscription_id text not null references plan_subscription (id),
  user_id uuid not null,
  status text not null,
  -- Why the provider made it: `subscription_create`, `subscription_cycle` or `subscription_update`.
  reason text not null,
  price_id text not null,
  -- What is billed at this price, and the price of a whole period.
  billed_cents bigint not null check (billed_cents >= 0),
  price_cents bigint not null check (price_cents >= 0),
  currency text not null,
  total_cents bigint not null,
  paid_cents bigint not null,
  refunded_cents bigint not null default 0,
  -- `open`: the payer disputes the payment; `lost` and `won` are final.
  dispute text check (dispute in ('open', 'lost', 'won')),
  -- The page on which an unpaid invoice is paid.
  pay_url text,
  payment_intent text,
  created_at timestamptz not null,
  paid_at timestamptz,
  period_end timestamptz not null,
  -- Credits of this invoice, null until they are granted, and how many of them were taken back.
  granted bigint check (granted >= 0),
  taken_back bigint not null default 0 check (taken_back between 0 and coalesce(granted, 0)),
  -- Number of the last change of the credits, which is part of the key of its transfer.
  changes integer not null default 0,
  -- When the credits expire, unless a refund or dispute suspends them.
  expires_at timestamptz,
  constraint granted_credits_expire check ((granted is null) = (expires_at is null))
);
create index plan_invoice_of_subscription on plan_invoice (subscription_id, created_at);
create index plan_invoice_of_user on plan_invoice (user_id, created_at desc);
create index plan_invoice_payment on plan_invoice (payment_intent) where payment_intent is not null;

-- What each invoice changed in the credits of its user, in the order of the ids of tasks.
create table plan_credit_change (
  id uuid primary key,
  user_id uuid not null,
  invoice_id text not null references plan_invoice (id),
  -- Negative: taken back.
  credits bigint not null,
  reason text not null check (reason in ('granted', 'refunded', 'refund_failed', 'disputed', 'dispute_won')),
  at timestamptz not null
);
create index plan_credit_change_of_user on plan_credit_change (user_id, id desc);

-- The provider's objects that are read again and again, and when next. An event only moves the time of the next reading.
create table plan_watch (
  -- A session or a subscription, by the provider's id.
  id text primary key,
  user_id uuid not null,
  -- Null: it is read only when an event names it.
  next_at timestamptz,
  every_seconds integer check (every_seconds > 0),
  -- Until then it is read as often as an open session, because a page that changes it is open.
  eager_until timestamptz,
  -- Since when a task waits that has not begun to read the object; it covers all events until then.
  queued_at timestamptz
);
create index plan_watch_due on plan_watch (next_at) where next_at is not null;

-- Events that the provider has sent, each once.
create table plan_event (
  id text primary key,
  type text not null,
  received_at timestamptz not null
);
create index plan_event_received on plan_event (received_at);
