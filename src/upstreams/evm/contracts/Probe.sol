// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

interface IRouter {
    function factory() external view returns (address);
    function getAmountsOut(uint256 amountIn, address[] calldata path) external view returns (uint256[] memory);
    function swapExactETHForTokensSupportingFeeOnTransferTokens(
        uint256 amountOutMin,
        address[] calldata path,
        address to,
        uint256 deadline
    ) external payable;
    function swapExactTokensForETHSupportingFeeOnTransferTokens(
        uint256 amountIn,
        uint256 amountOutMin,
        address[] calldata path,
        address to,
        uint256 deadline
    ) external;
}

interface IFactory {
    function getPair(address tokenA, address tokenB) external view returns (address);
}

interface IToken {
    function balanceOf(address owner) external view returns (uint256);
    function transfer(address to, uint256 amount) external returns (bool);
    function approve(address spender, uint256 amount) external returns (bool);
    function owner() external view returns (address);
}

/// A diamond (ERC-2535) names the contract that runs each of its functions.
interface IDiamondLoupe {
    function facetAddress(bytes4 selector) external view returns (address);
}

/// Trades a token to learn what a holder would meet: buys, transfers a hundredth, sells the rest. It is never deployed:
/// a node runs this code at an unused address in one `eth_call` (state override), so nothing is signed and nothing
/// moves. The token is hostile: every call to it has a limit of gas, and of what is copied from its answer.
contract Probe {
    uint256 private constant READ_GAS = 500_000;
    uint256 private constant MOVE_GAS = 2_000_000;
    uint256 private constant TRADE_GAS = 4_000_000;
    uint256 private constant ANSWER_BYTES = 256;

    struct Request {
        address router;
        address wrapped;
        address usdc;
        address token;
        /// The address that receives the simulated transfer has no code and no history.
        address receiver;
        uint256 spendWei;
    }

    struct Step {
        bool done;
        uint256 quoted;
        uint256 got;
        bytes reason;
    }

    struct Report {
        uint256 blockNumber;
        address owner;
        /// The contract that runs the transfers of a diamond, which the diamond can replace; 0 for other tokens.
        address facet;
        /// The length of the path of the trade: 0 without a pool, 2 over the wrapped coin, 3 over USDC.
        uint256 pathLength;
        /// What the token's pool holds of the other token, and what the pool of USDC and the wrapped coin holds.
        uint256 poolQuoteUnits;
        uint256 poolUsdcUnits;
        uint256 poolWrappedUnits;
        Step buy;
        Step transfer;
        Step sell;
    }

    receive() external payable {}

    function run(Request calldata request) external returns (Report memory report) {
        report.blockNumber = block.number;
        report.owner = _addressOf(request.token, abi.encodeCall(IToken.owner, ()));
        report.facet = _addressOf(request.token, abi.encodeCall(IDiamondLoupe.facetAddress, (IToken.transfer.selector)));
        address[] memory path = _path(request);
        report.pathLength = path.length;
        if (path.length == 0) return report;
        _readPools(request, report);

        report.buy = _buy(request, path);
        if (!report.buy.done || report.buy.got == 0) return report;

        report.transfer = _transfer(request, report.buy.got / 100);
        report.sell = _sell(request, path);
    }

    function _buy(Request calldata request, address[] memory path) private returns (Step memory step) {
        (step.quoted,) = _quote(request.router, request.spendWei, path);
        (step.done, step.reason) = _call(
            request.router,
            request.spendWei,
            TRADE_GAS,
            abi.encodeCall(
                IRouter.swapExactETHForTokensSupportingFeeOnTransferTokens, (0, path, address(this), type(uint256).max)
            )
        );
        step.got = _balance(request.token, address(this));
    }

    function _transfer(Request calldata request, uint256 amount) private returns (Step memory step) {
        if (amount == 0) amount = 1;
        step.quoted = amount;
        uint256 before = _balance(request.token, request.receiver);
        bytes memory answer;
        (step.done, answer) =
            _call(request.token, 0, MOVE_GAS, abi.encodeCall(IToken.transfer, (request.receiver, amount)));
        if (!step.done) step.reason = answer;
        else if (_saysNo(answer)) step.done = false;
        uint256 held = _balance(request.token, request.receiver);
        step.got = held > before ? held - before : 0;
    }

    function _sell(Request calldata request, address[] memory path) private returns (Step memory step) {
        uint256 amount = _balance(request.token, address(this));
        address[] memory back = new address[](path.length);
        for (uint256 i = 0; i < path.length; i++) back[i] = path[path.length - 1 - i];
        if (amount == 0) return step;
        (step.quoted,) = _quote(request.router, amount, back);
        (bool approved, bytes memory answer) =
            _call(request.token, 0, MOVE_GAS, abi.encodeCall(IToken.approve, (request.router, amount)));
        if (!approved) {
            step.reason = answer;
            return step;
        }
        uint256 before = address(this).balance;
        (step.done, step.reason) = _call(
            request.router,
            0,
            TRADE_GAS,
            abi.encodeCall(
                IRouter.swapExactTokensForETHSupportingFeeOnTransferTokens,
                (amount, 0, back, address(this), type(uint256).max)
            )
        );
        step.got = address(this).balance - before;
    }

    /// Returns the path that yields more of the token, or an empty path if the router quotes neither.
    function _path(Request calldata request) private returns (address[] memory) {
        address[] memory direct = new address[](2);
        direct[0] = request.wrapped;
        direct[1] = request.token;
        address[] memory overUsdc = new address[](3);
        overUsdc[0] = request.wrapped;
        overUsdc[1] = request.usdc;
        overUsdc[2] = request.token;
        (uint256 directUnits, bool hasDirect) = _quote(request.router, request.spendWei, direct);
        (uint256 overUsdcUnits, bool hasOverUsdc) = _quote(request.router, request.spendWei, overUsdc);
        if (!hasDirect && !hasOverUsdc) return new address[](0);
        return directUnits >= overUsdcUnits ? direct : overUsdc;
    }

    function _readPools(Request calldata request, Report memory report) private {
        address other = report.pathLength == 2 ? request.wrapped : request.usdc;
        address pool = _pool(request, other, request.token);
        report.poolQuoteUnits = _balance(other, pool);
        address dollars = _pool(request, request.wrapped, request.usdc);
        if (dollars == address(0)) return;
        report.poolUsdcUnits = _balance(request.usdc, dollars);
        report.poolWrappedUnits = _balance(request.wrapped, dollars);
    }

    function _pool(Request calldata request, address a, address b) private returns (address) {
        (bool done, bytes memory answer) = _call(request.router, 0, READ_GAS, abi.encodeCall(IRouter.factory, ()));
        if (!done || answer.length < 32) return address(0);
        address factory = address(uint160(_word(answer, 0)));
        (done, answer) = _call(factory, 0, READ_GAS, abi.encodeCall(IFactory.getPair, (a, b)));
        return done && answer.length >= 32 ? address(uint160(_word(answer, 0))) : address(0);
    }

    function _quote(address router, uint256 amount, address[] memory path) private returns (uint256, bool) {
        (bool done, bytes memory answer) =
            _call(router, 0, READ_GAS, abi.encodeCall(IRouter.getAmountsOut, (amount, path)));
        // The returned list has a head of two words: its offset and its length.
        uint256 last = 32 * (path.length + 1);
        if (!done || answer.length < last + 32) return (0, false);
        uint256 units = _word(answer, last);
        return (units, units > 0);
    }

    /// Returns the address that a view of the token returns, or 0 if the token has no such function.
    function _addressOf(address token, bytes memory question) private returns (address) {
        (bool done, bytes memory answer) = _call(token, 0, READ_GAS, question);
        return done && answer.length == 32 ? address(uint160(_word(answer, 0))) : address(0);
    }

    function _balance(address token, address owner) private returns (uint256) {
        (bool done, bytes memory answer) = _call(token, 0, READ_GAS, abi.encodeCall(IToken.balanceOf, (owner)));
        return done && answer.length >= 32 ? _word(answer, 0) : 0;
    }

    function _saysNo(bytes memory answer) private pure returns (bool) {
        return answer.length >= 32 && _word(answer, 0) == 0;
    }

    function _word(bytes memory data, uint256 offset) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := mload(add(add(data, 32), offset))
        }
    }

    function _call(address to, uint256 value, uint256 gasMax, bytes memory data)
        private
        returns (bool done, bytes memory answer)
    {
        answer = new bytes(ANSWER_BYTES);
        assembly ("memory-safe") {
            done := call(gasMax, to, value, add(data, 32), mload(data), add(answer, 32), ANSWER_BYTES)
            let size := returndatasize()
            if gt(size, ANSWER_BYTES) { size := ANSWER_BYTES }
            mstore(answer, size)
        }
    }
}
