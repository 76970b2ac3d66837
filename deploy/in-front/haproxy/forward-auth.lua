-- Asks Surrogate about a request, as Traefik's forwardAuth does (`forwardAuth: { dialect: traefik }`). Allowed: the
-- request gets the fields of the answer, and txn.surrogate_allowed is true. Refused: the client gets the answer.
-- Anything else: 503. HAProxy goes on after an error in here, so forward-auth.cfg denies whatever is not allowed.

local decisions = os.getenv("SURROGATE_DECISIONS")
local timeout_ms = 10000

-- Of the client's request: framing, and what belongs to its connection (RFC 9110 §7.6.1).
local not_asked = {
  ["connection"] = true, ["content-length"] = true, ["expect"] = true, ["host"] = true, ["keep-alive"] = true,
  ["proxy-connection"] = true, ["te"] = true, ["trailer"] = true, ["transfer-encoding"] = true, ["upgrade"] = true,
  ["http2-settings"] = true, ["sec-websocket-key"] = true,
}

-- Of the gateway's answer: what it says about itself and not about the request.
local not_copied = {
  ["cache-control"] = true, ["connection"] = true, ["content-length"] = true, ["content-type"] = true,
  ["date"] = true, ["keep-alive"] = true, ["ratelimit"] = true, ["ratelimit-policy"] = true,
  ["transfer-encoding"] = true, ["vary"] = true,
}

-- APIs may read every odd character of a name as a hyphen: x_plan is x-plan to them.
local function folded(name)
  return (name:lower():gsub("[^a-z0-9]", "-"))
end

-- The values of a field as a list from 1; HAProxy counts from 0.
local function values_of(values)
  local list = {}
  for index = 0, #values do
    if values[index] ~= nil then list[#list + 1] = values[index] end
  end
  return list
end

local function question(txn)
  local headers = {}
  for name, values in pairs(txn.http:req_get_headers()) do
    if not not_asked[name] then headers[name] = values_of(values) end
  end
  headers["x-forwarded-method"] = { txn.f:method() }
  headers["x-forwarded-uri"] = { txn.f:pathq() }
  return { url = decisions, headers = headers, timeout = timeout_ms }
end

local function refuse(txn, status, headers, body)
  local reply = txn:reply({ status = status, body = body })
  for name, values in pairs(headers) do
    for _, value in ipairs(values_of(values)) do reply:add_header(name, value) end
  end
  txn:done(reply)
end

local function unavailable(txn, reason)
  txn:Warning("surrogate: " .. reason)
  refuse(txn, 503, { ["content-type"] = { "application/problem+json" }, ["cache-control"] = { "no-store" } },
    '{"status":503,"code":"unavailable","title":"No decision can be had."}')
end

local function allow(txn, answer)
  local fields = {}
  for name, values in pairs(answer.headers) do
    if not not_copied[name] then fields[folded(name)] = values_of(values) end
  end
  for name in pairs(txn.http:req_get_headers()) do
    if fields[folded(name)] then txn.http:req_del_header(name) end
  end
  for name, values in pairs(fields) do
    for _, value in ipairs(values) do
      -- An empty field says that there is nothing of the kind.
      if value ~= "" then txn.http:req_add_header(name, value) end
    end
  end
  txn:set_var("txn.surrogate_allowed", true)
end

core.register_action("surrogate", { "http-req" }, function(txn)
  txn:set_var("txn.surrogate_allowed", false)
  local answer = core.httpclient():get(question(txn))
  local status = answer and answer.status or 0
  -- The gateway says who asks in each yes, also that it is nobody; another server's 200 is none.
  if status == 200 and answer.headers and answer.headers["x-auth-sub"] then return allow(txn, answer) end
  local kind = answer and answer.headers and answer.headers["content-type"]
  if status < 400 or not kind or kind[0] ~= "application/problem+json" then
    return unavailable(txn, "no decision, status " .. status)
  end
  local headers = {}
  for name, values in pairs(answer.headers) do
    if name ~= "connection" and name ~= "keep-alive" and name ~= "transfer-encoding" then headers[name] = values end
  end
  refuse(txn, status, headers, answer.body)
end)
